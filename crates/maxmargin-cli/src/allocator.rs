//! The allocator of the command: if the system refuses memory, the program ends with an error instead of a crash.
//!
//! Almost any line of the program may need memory, so this is the one place that sees every refusal. Nothing has to be
//! cleaned up: files that are not complete have no name (see `maxmargin_io::atomic`).

use maxmargin::error::Code;
use std::alloc::{GlobalAlloc, Layout, System};

/// The allocator of the system, see the module documentation.
#[derive(Debug)]
pub struct Allocator;

// SAFETY: the allocator of the system, which never returns null to the caller.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of the trait.
        given(unsafe { System.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of the trait.
        given(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of the trait, and the block is one of the system.
        unsafe { System.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract of the trait, and the block is one of the system.
        given(unsafe { System.realloc(block, layout, size) }, size)
    }
}

#[inline]
fn given(block: *mut u8, size: usize) -> *mut u8 {
    if block.is_null() {
        refused(size);
    }
    block
}

/// Prints the error and ends the program. Allocates nothing.
#[cold]
fn refused(size: usize) -> ! {
    debug_assert_eq!(Code::OutOfMemory.number(), 109);
    let mut digits = [0; 20];
    let texts: [&[u8]; 3] = [
        b"error[MM0109]: there is not enough memory: the system refused ",
        decimal(size as u64, &mut digits),
        b" bytes; no file is left half written\n   \
          help: close other programs, use fewer --threads, or give less data; an .mmd file is learned from in parts by `train --memory`\n   \
          `maxmargin explain MM0109` says more\n",
    ];
    let mut line = [0; 400];
    let mut end = 0;
    for text in texts {
        line[end..end + text.len()].copy_from_slice(text);
        end += text.len();
    }
    // One write, so that the lines of two threads do not mix.
    #[cfg(unix)]
    // SAFETY: the bytes are initialised, and `_exit` runs nothing that could need memory.
    unsafe {
        let _ = libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), end);
        libc::_exit(i32::from(Code::OutOfMemory.exit_code()))
    }
    #[cfg(not(unix))]
    {
        let _ = std::io::Write::write_all(&mut std::io::stderr(), &line[..end]);
        std::process::abort()
    }
}

/// The digits of a number.
fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[start..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_without_memory() {
        for number in [0, 7, 1024, u64::MAX] {
            assert_eq!(decimal(number, &mut [0; 20]), number.to_string().as_bytes());
        }
    }
}
