/* Takes an object that no system here has: it must not be opened. */
extern int no_such_object;
int *check_nothing(void) { return &no_such_object; }
