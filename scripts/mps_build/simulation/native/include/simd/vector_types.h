#pragma once
typedef unsigned simd_uint2 __attribute__((ext_vector_type(2)));
typedef unsigned simd_uint3 __attribute__((ext_vector_type(3)));
typedef unsigned simd_uint4 __attribute__((ext_vector_type(4)));
typedef int simd_int2 __attribute__((ext_vector_type(2)));
typedef int simd_int3 __attribute__((ext_vector_type(3)));
typedef int simd_int4 __attribute__((ext_vector_type(4)));
typedef unsigned long simd_ulong2 __attribute__((ext_vector_type(2)));
typedef unsigned long simd_ulong3 __attribute__((ext_vector_type(3)));
typedef unsigned long simd_ulong4 __attribute__((ext_vector_type(4)));
typedef long simd_long2 __attribute__((ext_vector_type(2)));
typedef long simd_long3 __attribute__((ext_vector_type(3)));
typedef long simd_long4 __attribute__((ext_vector_type(4)));
typedef float simd_float2 __attribute__((ext_vector_type(2)));
typedef float simd_float3 __attribute__((ext_vector_type(3)));
typedef float simd_float4 __attribute__((ext_vector_type(4)));
