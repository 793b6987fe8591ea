#include <stdlib.h>
int kept(void);
int check_frees(void) {
  void *volatile memory = malloc(8);
  free(memory);
  return kept() != 1;
}
