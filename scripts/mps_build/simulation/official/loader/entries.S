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

/* The size of a large frame was asked: every page of Linux' stack is there. Keeps every register. */
    .globl darwin___chkstk_darwin
    .type darwin___chkstk_darwin, %function
darwin___chkstk_darwin:
    ret

    .section .note.GNU-stack,"",%progbits
