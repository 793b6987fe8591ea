// Linked before all others of the software Metal: the selectors before this one are those that PyTorch's files send.
extern "C" __attribute__((section("objc_selrefs"), used)) const char *sim_first_own_selector = "sim_first_own_selector";
