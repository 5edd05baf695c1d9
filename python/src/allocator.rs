//! The allocator of the extension: what is freed goes back to the system.
//!
//! The pool of the C library keeps large blocks once it has seen one of their size freed, and the memory of a fit stood
//! beside that of the one before. The command sets a limit for its whole process (`return_freed_memory`); a guest in
//! somebody's interpreter may not, since arrays of other libraries would pay for it. So blocks from a certain size on are
//! mapped by ourselves, and the rest is left to the pool.

use std::alloc::{GlobalAlloc, Layout, System};

/// See the top of the file.
pub(crate) struct Returning;

/// Blocks from this size on are mapped: a system call and the pages' first touch cost little beside filling them.
const LARGE: usize = 256 << 10;

/// What mappings are aligned to at the least, whatever the size of a page.
const PAGE: usize = 4096;

fn is_mapped(layout: &Layout) -> bool {
    layout.size() >= LARGE && layout.align() <= PAGE
}

// SAFETY: the system's allocator, or mappings of at least the size asked for, aligned to a page. Which of the two holds a
// block follows from its layout alone, so that each is freed where it came from; a block that grows or shrinks past the
// limit moves from one to the other.
unsafe impl GlobalAlloc for Returning {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_mapped(&layout) { map(layout.size()) } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // Fresh mappings are zero.
        if is_mapped(&layout) { map(layout.size()) } else { unsafe { System.alloc_zeroed(layout) } }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_mapped(&layout) {
            // SAFETY: mapped above with this very size.
            unsafe { unmap(block, layout.size()) }
        } else {
            unsafe { System.dealloc(block, layout) }
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: whoever calls vouches for size and alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (is_mapped(&layout), is_mapped(&wanted)) {
            (false, false) => unsafe { System.realloc(block, layout, size) },
            // SAFETY: mapped above with this very size.
            (true, true) => unsafe { remap(block, layout.size(), size) },
            _ => {
                let moved = unsafe { self.alloc(wanted) };
                if !moved.is_null() {
                    // SAFETY: two blocks, each at least as long as what is copied.
                    unsafe {
                        std::ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
                        self.dealloc(block, layout);
                    }
                }
                moved
            }
        }
    }
}

fn map(size: usize) -> *mut u8 {
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a fresh mapping touches nothing that exists.
    let block = unsafe { libc::mmap(std::ptr::null_mut(), size, access, kind, -1, 0) };
    if block == libc::MAP_FAILED { std::ptr::null_mut() } else { block.cast() }
}

unsafe fn unmap(block: *mut u8, size: usize) {
    // SAFETY: a whole mapping of ours. That can fail only where the system has no room to note it: then it stays.
    let _ = unsafe { libc::munmap(block.cast(), size) };
}

unsafe fn remap(block: *mut u8, size: usize, wanted: usize) -> *mut u8 {
    // SAFETY: a whole mapping of ours, which may move.
    let moved = unsafe { libc::mremap(block.cast(), size, wanted, libc::MREMAP_MAYMOVE) };
    if moved == libc::MAP_FAILED { std::ptr::null_mut() } else { moved.cast() }
}
