static inline MTLSize MTLSizeMake(NSUInteger width, NSUInteger height, NSUInteger depth) {
  MTLSize made = {width, height, depth};
  return made;
}
static inline MTLOrigin MTLOriginMake(NSUInteger x, NSUInteger y, NSUInteger z) {
  MTLOrigin made = {x, y, z};
  return made;
}
static inline MTLRegion MTLRegionMake1D(NSUInteger x, NSUInteger width) {
  MTLRegion made = {{x, 0, 0}, {width, 1, 1}};
  return made;
}
static inline MTLRegion MTLRegionMake2D(NSUInteger x, NSUInteger y, NSUInteger width, NSUInteger height) {
  MTLRegion made = {{x, y, 0}, {width, height, 1}};
  return made;
}
