# ruff: noqa: E501 (a line of a real file is as long as it is)
"""Faults to inject into real files of PyTorch 2.6.0 (name, file below ATen/, what to replace, by what, what must be said)."""

from __future__ import annotations

from pathlib import Path

from mps_build.wheel_build.mm.compiler import Checker, find_zig
from mps_build.wheel_build.mm.tree import MpsTree
from mps_build.wheel_build.objc import write_frameworks

OPS = "native/mps/operations/"
FAULTS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "selector part misspelt",
        OPS + "UnaryOps.mm",
        "absoluteWithTensor:inputTensor name:nil];\n      if",
        "absoluteWithTensr:inputTensor name:nil];\n      if",
        "did you mean 'absoluteWithTensor:name:'",
    ),
    (
        "selector part of another method",
        OPS + "Pad.mm",
        "padTensor:newCachedGraph->inputTensor_\n",
        "padTensr:newCachedGraph->inputTensor_\n",
        "padTensor:",
    ),
    (
        "label missing",
        OPS + "BinaryOps.mm",
        'castTensor:primaryCastTensor toType:MPSDataTypeFloat32 name:@"primaryCastTensor"]',
        "castTensor:primaryCastTensor toType:MPSDataTypeFloat32]",
        "castTensor:toType:",
    ),
    (
        "arguments in the wrong order",
        OPS + "UnaryOps.mm",
        "[mpsGraph reshapeTensor:rc withShape:getMPSShape(output) name:nil]",
        "[mpsGraph reshapeTensor:getMPSShape(output) withShape:rc name:nil]",
        "cannot initialize a parameter of type 'MPSGraphTensor *'",
    ),
    (
        "guard taken away",
        OPS + "UnaryOps.mm",
        "if (is_macos_13_or_newer(MacOSVersion::MACOS_VER_15_0_PLUS)) {",
        "if (true) {",
        "reciprocalSquareRootWithTensor:name:",
    ),
    (
        "guard for an older macOS",
        OPS + "Normalization.mm",
        "if (is_macos_13_or_newer(MacOSVersion::MACOS_VER_15_0_PLUS)) {\n            rsqrtTensor",
        "if (is_macos_13_or_newer(MacOSVersion::MACOS_VER_14_0_PLUS)) {\n            rsqrtTensor",
        "macOS 15.0",
    ),
    (
        "check taken away",
        OPS + "FastFourierTransform.mm",
        'TORCH_CHECK(supportsComplex(), "FFT operations are only supported on MacOS 14+");\n  auto key = __func__ + getTensorsStringKey({self, out}) + ":" + getArrayRefString(dim) + ":" +\n      std::to_string(normalization) + ":" + std::to_string(onesided);',
        "auto key = std::string(__func__) + std::to_string(onesided);",
        "realToHermiteanFFTWithTensor:axes:descriptor:name:",
    ),
    (
        "guard the wrong way round",
        OPS + "UnaryOps.mm",
        "if (!mps::supportsComplex()) {\n    if (!result",
        "if (mps::supportsComplex()) {\n    if (!result",
        "conjugateWithTensor:name:",
    ),
    (
        "new call without a guard",
        OPS + "Pad.mm",
        "MPSGraphTensor* padTensor = [mpsGraph padTensor",
        "[mpsGraph conjugateWithTensor:newCachedGraph->inputTensor_ name:nil];\n        MPSGraphTensor* padTensor = [mpsGraph padTensor",
        "macOS 14.0",
    ),
    (
        "enum constant that is none",
        OPS + "Attention.mm",
        "maskedMM toType:MPSDataTypeFloat32",
        "maskedMM toType:MPSDataTypeFloat33",
        "MPSDataTypeFloat33",
    ),
    (
        "constant of another enum",
        OPS + "Convolution.mm",
        "descriptor_.paddingStyle = MPSGraphPaddingStyleExplicit;\n\n  descriptor_.paddingLeft = paddingHorizontal;\n  descriptor_.paddingRight = paddingHorizontal;\n  descriptor_.paddingTop = paddingVertical;\n  descriptor_.paddingBottom = paddingVertical;\n\n  descriptor_.dataLayout = (",
        "descriptor_.paddingStyle = MPSGraphPaddingModeZero;\n  descriptor_.dataLayout = (",
        "MPSGraphPaddingMode",
    ),
    (
        "number for an enum",
        OPS + "Attention.mm",
        "maskedMM toType:MPSDataTypeFloat32",
        "maskedMM toType:32",
        "MPSDataType",
    ),
    (
        "property of another class",
        OPS + "Convolution.mm",
        "descriptor_.paddingBack = paddingDepth;",
        "descriptor_.kernelWidth = paddingDepth;",
        "kernelWidth",
    ),
    (
        "property misspelt",
        OPS + "Convolution.mm",
        "descriptor_.channelDimensionIndex = -3LL;",
        "descriptor_.channelDimensionIndx = -3LL;",
        "channelDimensionInd",
    ),
    (
        "block with another signature",
        "mps/MPSEvent.mm",
        "notifyLocked(^(id<MTLSharedEvent>, uint64_t) {",
        "notifyLocked(^(id<MTLSharedEvent>) {",
        "void (^)",
    ),
    (
        "literal of another element type",
        OPS + "Convolution.mm",
        "descriptor_.paddingValues = @[\n",
        'descriptor_.paddingValues = @[\n    @"0",\n',
        "array element type 'NSNumber *'",
    ),
    (
        "number of no object in a literal",
        OPS + "LinearAlgebra.mm",
        "MPSShape* aShape = @[ @(batchSize), @(aRowsTiled), @(aCols) ];",
        "MPSShape* aShape = @[ batchSize, @(aRowsTiled), @(aCols) ];",
        "is not an Objective-C object",
    ),
    (
        "buffer where a pipeline belongs",
        OPS + "Im2Col.mm",
        "[computeEncoder setComputePipelineState:im2colPSO];",
        "[computeEncoder setComputePipelineState:getMTLBufferStorage(input)];",
        "MTLComputePipelineState",
    ),
    (
        "message to the wrong protocol",
        OPS + "Im2Col.mm",
        "[computeEncoder dispatchThreads:MTLSizeMake(output_length, n_input_plane, batch_size)",
        "[getMTLBufferStorage(input) dispatchThreads:MTLSizeMake(output_length, n_input_plane, batch_size)",
        "dispatchThreads:threadsPerThreadgroup:",
    ),
    (
        "a size where a number belongs",
        OPS + "BinaryKernel.mm",
        "[computeEncoder setBuffer:kernelDataOffsets offset:0 atIndex:3];",
        "[computeEncoder setBuffer:kernelDataOffsets offset:MTLSizeMake(1, 1, 1) atIndex:3];",
        "MTLSize",
    ),
    (
        "class misspelt",
        OPS + "LinearAlgebra.mm",
        "[[MPSNDArrayMatrixMultiplication alloc]",
        "[[MPSNDArrayMatrixMultiplicaton alloc]",
        "MPSNDArrayMatrixMultiplicaton",
    ),
    (
        "tensor data for a tensor",
        OPS + "ScatterGather.mm",
        "[mpsGraph gatherAlongAxis:(NSInteger)dim",
        "[mpsGraph gatherAlongAxis:mpsGraph",
        "NSInteger",
    ),
    (
        "string in C for one in Objective-C",
        OPS + "BinaryOps.mm",
        'name:@"primaryCastTensor"]',
        'name:"primaryCastTensor"]',
        "must be prefixed by",
    ),
    (
        "class method of an instance",
        OPS + "FastFourierTransform.mm",
        "[MPSGraphFFTDescriptor descriptor];\n      descriptor.scalingMode = normalization_to_ScalingMode(normalization);\n      MPSGraphTensor",
        "[MPSGraphFFTDescriptor descripter];\n      descriptor.scalingMode = normalization_to_ScalingMode(normalization);\n      MPSGraphTensor",
        "descripter",
    ),
    (
        "a read-only property written",
        OPS + "Pad.mm",
        "newCachedGraph->gradInputTensor_ = padTensor;",
        "padTensor.shape = nil;\n          newCachedGraph->gradInputTensor_ = padTensor;",
        "setShape:",
    ),
)
# Relatives of mistakes that an earlier check_mm let pass: loops, formats, lists, comparisons, getters in lambdas.
MORE: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "loop variable of another type",
        "native/mps/OperationUtils.mm",
        "  for (NSNumber* elem in shape) {\n    str +=",
        "  for (NSString* elem in shape) {\n    str += elem.UTF8String;\n    str +=",
        "the loop's variable is 'NSString *'",
    ),
    (
        "loop over the values of a dictionary taken for its keys",
        OPS + "Unique.mm",
        "  if (return_inverse) {\n    Placeholder inv",
        "  for (MPSGraphTensor* each in results.allValues) {\n    (void)each;\n  }\n  if (return_inverse) {\n    Placeholder inv",
        "'MPSGraphTensorData *'",
    ),
    (
        "loop over a dictionary taken for its values",
        OPS + "Unique.mm",
        "  if (return_inverse) {\n    Placeholder inv",
        "  for (MPSGraphTensorData* each in results) {\n    (void)each;\n  }\n  if (return_inverse) {\n    Placeholder inv",
        "the elements of the collection are 'MPSGraphTensor *'",
    ),
    (
        "loop in a generic lambda",
        OPS + "Activation.mm",
        "NSArray<MPSGraphTensor*>* outputTensorsArray = [mpsGraph splitTensor:inputTensor",
        "for (NSNumber* each in [mpsGraph splitTensor:inputTensor numSplits:2 axis:0 name:nil]) {\n        (void)each;\n      }\n      NSArray<MPSGraphTensor*>* outputTensorsArray = [mpsGraph splitTensor:inputTensor",
        "the loop's variable is 'NSNumber *'",
    ),
    (
        "format for a C string, given an object",
        "mps/MPSProfiler.mm",
        "captureCount++, name.c_str()];",
        "captureCount++, captureManager];",
        "format specifies type",
    ),
    (
        "format for an object, given a C string",
        OPS + "BitwiseOps.mm",
        'stringWithFormat:@"Dispatch %s kernel", kernel_name.c_str()]',
        'stringWithFormat:@"Dispatch %@ kernel", kernel_name.c_str()]',
        "format specifies type",
    ),
    (
        "format without its argument",
        OPS + "BitwiseOps.mm",
        'stringWithFormat:@"Dispatch %s kernel", kernel_name.c_str()]',
        'stringWithFormat:@"Dispatch %s kernel"]',
        "more '%' conversions than data arguments",
    ),
    (
        "list of objects without nil",
        OPS + "Shape.mm",
        "[NSArray arrayWithObjects:castInputTensors.data() count:len_tensor_array]",
        "[NSArray arrayWithObjects:castInputTensors[0], castInputTensors[0]]",
        "missing sentinel",
    ),
    (
        "tensor compared with its data",
        OPS + "Unique.mm",
        "  if (return_inverse) {\n    Placeholder inv",
        "  if (outputPlaceholder.getMPSGraphTensor() == lengthPlaceholder.getMPSGraphTensorData()) {\n    return;\n  }\n  if (return_inverse) {\n    Placeholder inv",
        "comparison of distinct pointer types",
    ),
    (
        "method written as a property",
        OPS + "Activation.mm",
        "NSArray<MPSGraphTensor*>* outputTensorsArray = [mpsGraph splitTensor:inputTensor",
        "MPSGraphTensor* again = ((MPSGraph*)mpsGraph).absoluteWithTensor;\n      (void)again;\n      NSArray<MPSGraphTensor*>* outputTensorsArray = [mpsGraph splitTensor:inputTensor",
        "takes arguments",
    ),
    (
        "NSObject's method misspelt",
        OPS + "Unique.mm",
        "  if (return_inverse) {\n    Placeholder inv",
        "  if (![results isKindOfClass:[NSDictionary clas]]) {\n    return;\n  }\n  if (return_inverse) {\n    Placeholder inv",
        "did you mean 'class'",
    ),
    (
        "new property read in a generic lambda",
        OPS + "Activation.mm",
        "NSArray<MPSGraphTensor*>* outputTensorsArray = [mpsGraph splitTensor:inputTensor",
        "MTLCompileOptions* options = [[MTLCompileOptions new] autorelease];\n      const bool isSafe = options.mathMode == MTLMathModeSafe;\n      (void)isSafe;\n      NSArray<MPSGraphTensor*>* outputTensorsArray = [mpsGraph splitTensor:inputTensor",
        "macOS 15.0",
    ),
    (
        "subscript of another key type",
        OPS + "Convolution.mm",
        "feeds[weightsPlaceholder.getMPSGraphTensor()] = weightsPlaceholder.getMPSGraphTensorData();",
        'feeds[@"weights"] = weightsPlaceholder.getMPSGraphTensorData();',
        "NSString",
    ),
    (
        "number for a key",
        OPS + "Convolution.mm",
        "feeds[weightsPlaceholder.getMPSGraphTensor()] = weightsPlaceholder.getMPSGraphTensorData();",
        "feeds[1] = weightsPlaceholder.getMPSGraphTensorData();",
        "NSMutableDictionary",
    ),
    (
        "key and value exchanged",
        OPS + "Unique.mm",
        "[results setObject:lengthPlaceholder.getMPSGraphTensorData() forKey:lengthPlaceholder.getMPSGraphTensor()];",
        "[results setObject:lengthPlaceholder.getMPSGraphTensor() forKey:lengthPlaceholder.getMPSGraphTensorData()];",
        "MPSGraphTensorData",
    ),
    (
        "selector misspelt in @selector",
        "mps/MPSDevice.mm",
        "@selector(cumulativeSumWithTensor:axis:name:)",
        "@selector(cumulativeSumWithTensor:axes:name:)",
        "cumulativeSumWithTensor:axis:name:",
    ),
    (
        "error given, not its address",
        "native/mps/OperationUtils.mm",
        "[device newLibraryWithSource:str options:options error:&error]",
        "[device newLibraryWithSource:str options:options error:error]",
        "NSError",
    ),
    (
        "std::string for a name",
        "native/mps/OperationUtils.mm",
        "[lib newFunctionWithName:[NSString stringWithUTF8String:fname.c_str()]]",
        "[lib newFunctionWithName:fname]",
        "NSString",
    ),
    (
        "function for a library",
        "native/mps/OperationUtils.mm",
        "id<MTLFunction> func = [lib newFunctionWithName:",
        "id<MTLLibrary> func = [lib newFunctionWithName:",
        "MTLLibrary",
    ),
    (
        "handler that returns something",
        "mps/MPSProfiler.mm",
        "addCompletedHandler:^(id<MTLCommandBuffer> cb) {",
        "addCompletedHandler:^int(id<MTLCommandBuffer> cb) {",
        "int (^)",
    ),
    (
        "array of other elements",
        OPS + "Pooling.mm",
        "NSArray<MPSGraphTensor*>* poolOutputs = [mpsGraph",
        "NSArray<NSNumber*>* poolOutputs = [mpsGraph",
        "NSArray<",
    ),
    (
        "element of another type",
        OPS + "Distributions.mm",
        "NSArray<MPSGraphTensor*>* generatorTensors",
        "NSNumber* first = getMPSShape(self)[0].stringValue;\n      (void)first;\n      NSArray<MPSGraphTensor*>* generatorTensors",
        "NSString",
    ),
)


def bare_checker(folder: Path, *flags: str, target: str) -> Checker:
    """Return a checker that writes below a folder; `flags` default to those of PyTorch."""
    tree = MpsTree(root=folder, release="2.6.0", standard="17", flags=flags or ("-fno-objc-arc",), include=())
    (folder / "scratch").mkdir(exist_ok=True)
    frameworks = write_frameworks(folder / "frameworks")
    return Checker(
        zig=find_zig(), tree=tree, generated=(), frameworks=frameworks, target=target, scratch=folder / "scratch"
    )
