// A provider that may keep what an image frees, as the software Metal does. Its own `free` is the system's: this ends.
#include <stdlib.h>
static int count;
void sim_free(void *memory) { count++, free(memory); }
int kept(void) { return count; }
