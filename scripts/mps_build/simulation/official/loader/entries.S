/* Where C cannot be written: calls that must keep registers, or that must not be seen by who unwinds. */
    .text

/* The address of a thread variable; x0: its descriptor {this, the image's number, its offset in the block}. Callers
   rely on every register but x0, x16 and x17. */
    .globl thread_variable
    .type thread_variable, %function
thread_variable:
    ldr x16, [x0, #8]
    ldr x17, [x0, #16]
    stp x1, x2, [sp, #-16]!
    mrs x1, tpidr_el0
    adrp x2, :gottprel:thread_blocks
    ldr x2, [x2, :gottprel_lo12:thread_blocks]
    ldr x1, [x1, x2]
    cbz x1, 1f
    ldr x1, [x1, x16, lsl #3]
    cbz x1, 1f
    add x0, x1, x17
    ldp x1, x2, [sp], #16
    ret
1:  stp x29, x30, [sp, #-16]!
    mov x29, sp
    stp x3, x4, [sp, #-16]!
    stp x5, x6, [sp, #-16]!
    stp x7, x8, [sp, #-16]!
    stp x9, x10, [sp, #-16]!
    stp x11, x12, [sp, #-16]!
    stp x13, x14, [sp, #-16]!
    stp x15, x17, [sp, #-16]!
    sub sp, sp, #512
    mov x1, sp
    st1 {v0.16b-v3.16b}, [x1], #64
    st1 {v4.16b-v7.16b}, [x1], #64
    st1 {v8.16b-v11.16b}, [x1], #64
    st1 {v12.16b-v15.16b}, [x1], #64
    st1 {v16.16b-v19.16b}, [x1], #64
    st1 {v20.16b-v23.16b}, [x1], #64
    st1 {v24.16b-v27.16b}, [x1], #64
    st1 {v28.16b-v31.16b}, [x1], #64
    mov x0, x16
    bl make_thread_block
    mov x1, sp
    ld1 {v0.16b-v3.16b}, [x1], #64
    ld1 {v4.16b-v7.16b}, [x1], #64
    ld1 {v8.16b-v11.16b}, [x1], #64
    ld1 {v12.16b-v15.16b}, [x1], #64
    ld1 {v16.16b-v19.16b}, [x1], #64
    ld1 {v20.16b-v23.16b}, [x1], #64
    ld1 {v24.16b-v27.16b}, [x1], #64
    ld1 {v28.16b-v31.16b}, [x1], #64
    add sp, sp, #512
    ldp x15, x17, [sp], #16
    ldp x13, x14, [sp], #16
    ldp x11, x12, [sp], #16
    ldp x9, x10, [sp], #16
    ldp x7, x8, [sp], #16
    ldp x5, x6, [sp], #16
    ldp x3, x4, [sp], #16
    ldp x29, x30, [sp], #16
    add x0, x0, x17
    ldp x1, x2, [sp], #16
    ret

/* A stub was called; x17: its description. Goes on as __cxa_throw, as if the caller had called that: its frame is the
   first that is unwound, and no frame of ours is in between. */
    .globl stub_entry
    .type stub_entry, %function
stub_entry:
    stp x29, x30, [sp, #-48]!
    mov x29, sp
    mov x0, x17
    mov x1, x30
    add x2, sp, #16
    bl prepare_throw
    ldp x0, x1, [sp, #16]
    ldp x2, x16, [sp, #32]
    ldp x29, x30, [sp], #48
    br x16

/* The frame is large: every page of Linux' stack is there. Keeps every register. */
    .globl darwin___chkstk_darwin
    .type darwin___chkstk_darwin, %function
darwin___chkstk_darwin:
    ret

/* setjmp and longjmp: macOS' jmp_buf has 192 bytes, less than glibc's. The signal mask is not kept. */
    .globl darwin_setjmp
    .type darwin_setjmp, %function
darwin_setjmp:
    stp x19, x20, [x0, #0]
    stp x21, x22, [x0, #16]
    stp x23, x24, [x0, #32]
    stp x25, x26, [x0, #48]
    stp x27, x28, [x0, #64]
    stp x29, x30, [x0, #80]
    mov x1, sp
    str x1, [x0, #96]
    stp d8, d9, [x0, #104]
    stp d10, d11, [x0, #120]
    stp d12, d13, [x0, #136]
    stp d14, d15, [x0, #152]
    mov w0, #0
    ret

    .globl darwin_longjmp
    .type darwin_longjmp, %function
darwin_longjmp:
    ldp x19, x20, [x0, #0]
    ldp x21, x22, [x0, #16]
    ldp x23, x24, [x0, #32]
    ldp x25, x26, [x0, #48]
    ldp x27, x28, [x0, #64]
    ldp x29, x30, [x0, #80]
    ldr x2, [x0, #96]
    mov sp, x2
    ldp d8, d9, [x0, #104]
    ldp d10, d11, [x0, #120]
    ldp d12, d13, [x0, #136]
    ldp d14, d15, [x0, #152]
    cmp w1, #0
    csinc w0, w1, wzr, ne
    ret

    .section .note.GNU-stack,"",%progbits
