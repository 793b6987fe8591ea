// How a graph is compiled and run: only what is told when it is done matters here.
#include "graph.h"

@implementation MPSGraphCompilationDescriptor
- (void)setOptimizationLevel:(MPSGraphOptimization)level {
}
@end
@implementation MPSGraphExecutionDescriptor
- (void)setCompletionHandler:(MPSGraphCompletionHandler)block {
  id copy = block ? (id)_Block_copy((const void *)block) : nil;
  if (completed) _Block_release((const void *)completed);
  completed = copy;
}
- (void)dealloc {
  if (completed) _Block_release((const void *)completed);
  [super dealloc];
}
- (void)setCompilationDescriptor:(MPSGraphCompilationDescriptor *)descriptor {
}
- (void)setEnableCommitAndContinue:(BOOL)is_enabled {
}
@end
