typedef NSRange *NSRangePointer;
static inline NSRange NSMakeRange(NSUInteger location, NSUInteger length) {
  NSRange made = {location, length};
  return made;
}
#if defined(__OBJC__) && defined(MPS_BUILD_CHECKED)
/* What check_mm asks in the head of `for (T x in collection)`: clang itself compares T with nothing. */
@interface NSObject (MpsBuildChecked)
- (id)mps_build_element;
@end
#ifdef __cplusplus
extern "C++" {
template <class T, class E>
constexpr bool mps_build_fits = __is_convertible_to(E, T) || __is_convertible_to(T, E);
}
#endif
#endif
