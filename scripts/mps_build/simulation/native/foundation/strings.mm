// Strings: UTF-8 bytes that end with 0.
#include <Foundation/Foundation.h>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <string>
#include "../runtime/objects.h"

@interface SimString : NSString {
 @public
  char *text;
}
@end

namespace {
// The object of one `%` of a format, from its characters (without the %) to its text.
std::string formatted(const std::string &form, va_list &arguments) {
  const char kind = form.back();
  if (kind == '%') return "%";
  if (kind == '@') {
    id object = va_arg(arguments, id);
    return object ? [[object description] UTF8String] : "(null)";
  }
  const std::string spec = "%" + form;
  char buffer[512];
  if (strchr("eEfgG", kind)) {
    snprintf(buffer, sizeof buffer, spec.c_str(), va_arg(arguments, double));
  } else if (kind == 's') {
    const char *text = va_arg(arguments, const char *);
    return text ? text : "(null)";
  } else if (kind == 'p' || form.find_first_of("ltzq") != std::string::npos) {
    snprintf(buffer, sizeof buffer, spec.c_str(), va_arg(arguments, long));
  } else {
    snprintf(buffer, sizeof buffer, spec.c_str(), va_arg(arguments, int));
  }
  return buffer;
}
} // namespace

@implementation NSString
+ (instancetype)stringWithUTF8String:(const char *)text {
  if (!text) return nil;
  auto *made = (SimString *)[SimString alloc];
  made->text = strdup(text);
  return (id)[made autorelease];
}
+ (instancetype)stringWithCString:(const char *)text encoding:(NSStringEncoding)encoding {
  return [NSString stringWithUTF8String:text];
}
+ (instancetype)stringWithFormat:(NSString *)format, ... {
  va_list arguments;
  va_start(arguments, format);
  std::string out;
  for (const char *at = [format UTF8String]; *at;) {
    if (*at != '%') {
      out += *at++;
      continue;
    }
    const char *kind = at + 1 + strcspn(at + 1, "diouxXeEfgGcsp@%");
    if (!*kind) break;
    out += formatted(std::string(at + 1, kind + 1), arguments);
    at = kind + 1;
  }
  va_end(arguments);
  return [NSString stringWithUTF8String:out.c_str()];
}
- (NSString *)description {
  return self;
}
- (NSUInteger)length {
  return strlen([self UTF8String]);
}
- (NSUInteger)hash {
  return std::hash<std::string>()([self UTF8String]);
}
- (BOOL)isEqual:(id)other {
  return [other isKindOfClass:[NSString class]] && !strcmp([self UTF8String], [other UTF8String]);
}
- (BOOL)isEqualToString:(NSString *)other {
  return [self isEqual:other];
}
@end

@implementation SimString
- (const char *)UTF8String {
  return text;
}
- (void)dealloc {
  free(text);
  [super dealloc];
}
@end

// What the compiler makes of @"...": class, flags, bytes, length. It lives as long as the library.
@interface NSConstantString : NSString {
  int flags;
  const char *bytes;
  long count;
}
@end
@implementation NSConstantString
- (const char *)UTF8String {
  return bytes;
}
@end
