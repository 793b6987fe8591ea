// LSTM's descriptor. The layer itself is not here: nothing of a libtorch without USE_MPS asks for it (RNN.cpp).
#include "graph.h"

@implementation MPSGraphLSTMDescriptor
+ (instancetype)descriptor {
  return [[self new] autorelease];
}
- (void)setBidirectional:(BOOL)is_bidirectional {
}
- (void)setProduceCell:(BOOL)produces {
}
- (void)setTraining:(BOOL)is_training {
}
@end
