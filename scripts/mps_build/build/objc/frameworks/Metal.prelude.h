#include <Foundation/Foundation.h>
