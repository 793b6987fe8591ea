typedef NSRange *NSRangePointer;
static inline NSRange NSMakeRange(NSUInteger location, NSUInteger length) {
  NSRange made = {location, length};
  return made;
}
