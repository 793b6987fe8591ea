// objc_msgSend and its kin, for ELF on x86-64 and Mach-O on arm64: the arguments stay as they are while the method is
// looked up. The frames are described to the unwinder, so that an unknown selector can leave as a C++ exception.
#if defined(__x86_64__)
// Keep every register that may carry an argument.
#define KEEP                                                                                          \
  "pushq %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\nmovq %rsp, %rbp\n"                      \
  ".cfi_def_cfa_register %rbp\nsubq $192, %rsp\n"                                                     \
  "movq %rdi, (%rsp)\nmovq %rsi, 8(%rsp)\nmovq %rdx, 16(%rsp)\nmovq %rcx, 24(%rsp)\n"                 \
  "movq %r8, 32(%rsp)\nmovq %r9, 40(%rsp)\nmovq %rax, 48(%rsp)\n"                                     \
  "movaps %xmm0, 64(%rsp)\nmovaps %xmm1, 80(%rsp)\nmovaps %xmm2, 96(%rsp)\nmovaps %xmm3, 112(%rsp)\n" \
  "movaps %xmm4, 128(%rsp)\nmovaps %xmm5, 144(%rsp)\nmovaps %xmm6, 160(%rsp)\nmovaps %xmm7, 176(%rsp)\n"
#define FIND "call sim_method_or_refuse@PLT\nmovq %rax, %r11\n"
#define BACK                                                                                          \
  "movq (%rsp), %rdi\nmovq 8(%rsp), %rsi\nmovq 16(%rsp), %rdx\nmovq 24(%rsp), %rcx\n"                 \
  "movq 32(%rsp), %r8\nmovq 40(%rsp), %r9\nmovq 48(%rsp), %rax\n"                                     \
  "movaps 64(%rsp), %xmm0\nmovaps 80(%rsp), %xmm1\nmovaps 96(%rsp), %xmm2\nmovaps 112(%rsp), %xmm3\n" \
  "movaps 128(%rsp), %xmm4\nmovaps 144(%rsp), %xmm5\nmovaps 160(%rsp), %xmm6\nmovaps 176(%rsp), %xmm7\n" \
  "leave\n.cfi_def_cfa %rsp, 8\n"
#define BEGIN(name) ".text\n.globl " name "\n.type " name ", @function\n" name ":\n.cfi_startproc\n"
#define END(name) ".cfi_endproc\n.size " name ", .-" name "\n"

// A message to nil gives 0; one that returns a structure gives its address back.
asm(BEGIN("objc_msgSend") "testq %rdi, %rdi\nje 1f\n" KEEP "movq (%rdi), %rdi\n" FIND BACK "jmp *%r11\n"
    "1: xorl %eax, %eax\nxorl %edx, %edx\npxor %xmm0, %xmm0\npxor %xmm1, %xmm1\nret\n" END("objc_msgSend"));
asm(BEGIN("objc_msgSend_stret") "testq %rsi, %rsi\nje 1f\n" KEEP
    "movq (%rsi), %rdi\nmovq %rdx, %rsi\n" FIND BACK "jmp *%r11\n"
    "1: movq %rdi, %rax\nret\n" END("objc_msgSend_stret"));
// The first argument is {object, class that sends}: its superclass is asked.
asm(BEGIN("objc_msgSendSuper2") KEEP "movq 8(%rdi), %rdi\nmovq 8(%rdi), %rdi\n" FIND BACK
    "movq (%rdi), %rdi\njmp *%r11\n" END("objc_msgSendSuper2"));
#elif defined(__aarch64__) && defined(__APPLE__)
// Keep every register that may carry an argument, and where a structure is returned (x8).
#define KEEP                                                                                            \
  "stp x29, x30, [sp, #-16]!\n.cfi_def_cfa_offset 16\nmov x29, sp\n.cfi_def_cfa w29, 16\n"              \
  ".cfi_offset w30, -8\n.cfi_offset w29, -16\nsub sp, sp, #208\n"                                       \
  "stp x0, x1, [sp]\nstp x2, x3, [sp, #16]\nstp x4, x5, [sp, #32]\nstp x6, x7, [sp, #48]\n"             \
  "str x8, [sp, #64]\nstp q0, q1, [sp, #80]\nstp q2, q3, [sp, #112]\nstp q4, q5, [sp, #144]\n"          \
  "stp q6, q7, [sp, #176]\n"
#define FIND "bl _sim_method_or_refuse\nmov x16, x0\n"
#define BACK                                                                                            \
  "ldp x0, x1, [sp]\nldp x2, x3, [sp, #16]\nldp x4, x5, [sp, #32]\nldp x6, x7, [sp, #48]\n"             \
  "ldr x8, [sp, #64]\nldp q0, q1, [sp, #80]\nldp q2, q3, [sp, #112]\nldp q4, q5, [sp, #144]\n"          \
  "ldp q6, q7, [sp, #176]\nmov sp, x29\nldp x29, x30, [sp], #16\n"
#define BEGIN(name) ".text\n.p2align 2\n.globl _" name "\n_" name ":\n.cfi_startproc\n"
#define END ".cfi_endproc\n"

// A message to nil gives 0, in every register that may carry an answer.
asm(BEGIN("objc_msgSend") "cbz x0, 1f\n" KEEP "ldr x0, [x0]\n" FIND BACK "br x16\n"
    "1: mov x1, #0\nmovi d0, #0\nmovi d1, #0\nmovi d2, #0\nmovi d3, #0\nret\n" END);
// The first argument is {object, class that sends}: its superclass is asked.
asm(BEGIN("objc_msgSendSuper2") KEEP "ldr x0, [x0, #8]\nldr x0, [x0, #8]\n" FIND BACK "ldr x0, [x0]\nbr x16\n" END);
#else
#error "messages are written for ELF on x86-64 and Mach-O on arm64"
#endif
