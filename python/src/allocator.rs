//! The allocator of the extension: what is freed goes back to the system.
//!
//! The pool of the C library keeps large blocks once it has seen one of their size freed, and the memory of a fit stood
//! beside that of the one before. The command sets a limit for its whole process (`return_freed_memory`); a guest in
//! somebody's interpreter may not, since arrays of other libraries would pay for it. So blocks from a certain size on are
//! mapped by ourselves, and the rest is left to the pool.
//!
//! To unmap a gigabyte takes a tenth of a second and more, which nobody who pressed Ctrl-C wants to wait for. While a job is
//! given up ([`free_later`]) what anybody frees is only listed, and a thread of its own unmaps it when the job has ended.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// See the top of the file.
pub(crate) struct Returning;

/// Blocks from this size on are mapped: a system call and the pages' first touch cost little beside filling them.
const LARGE: usize = 256 << 10;

/// What mappings are aligned to at the least, whatever the size of a page.
const PAGE: usize = 4096;

/// A block that is yet to be unmapped, noted within itself: nothing can be allocated here.
struct Listed {
    next: *mut Listed,
    size: usize,
}

/// The last of them.
static LISTED: AtomicPtr<Listed> = AtomicPtr::new(null_mut());

/// How many jobs are being given up.
static GIVEN_UP: AtomicUsize = AtomicUsize::new(0);

/// Until it is dropped blocks are listed instead of unmapped; then a thread unmaps them.
pub(crate) struct FreeingLater(());

/// Lets whoever waits for the end of a job not wait for its memory.
pub(crate) fn free_later() -> FreeingLater {
    GIVEN_UP.fetch_add(1, Ordering::SeqCst);
    FreeingLater(())
}

impl Drop for FreeingLater {
    fn drop(&mut self) {
        GIVEN_UP.fetch_sub(1, Ordering::SeqCst);
        let listed = !LISTED.load(Ordering::SeqCst).is_null();
        if listed && std::thread::Builder::new().spawn(unmap_listed).is_err() {
            unmap_listed();
        }
    }
}

fn list(block: *mut u8, size: usize) {
    let listed: *mut Listed = block.cast();
    let mut next = LISTED.load(Ordering::Relaxed);
    loop {
        // SAFETY: a mapping of ours that nobody uses any more, aligned to a page and longer than this.
        unsafe { listed.write(Listed { next, size }) };
        match LISTED.compare_exchange_weak(next, listed, Ordering::SeqCst, Ordering::Relaxed) {
            Ok(_) => break,
            Err(other) => next = other,
        }
    }
    // Whoever was to unmap it may have been there just before.
    if GIVEN_UP.load(Ordering::SeqCst) == 0 {
        unmap_listed();
    }
}

/// Pages are given back in parts where the system does so: whoever maps memory meanwhile waits for one of them and not for all.
const PART: usize = 16 << 20;

fn unmap_listed() {
    let mut block = LISTED.swap(null_mut(), Ordering::SeqCst);
    while !block.is_null() {
        // SAFETY: whoever takes the list has all of it alone, and each block is a whole mapping with its size noted.
        unsafe {
            let Listed { next, size } = block.read();
            for part in (PART..size).step_by(PART) {
                // Where that fails the pages go with the whole.
                let _ = libc::madvise(block.cast::<u8>().add(part).cast(), PART.min(size - part), libc::MADV_DONTNEED);
            }
            unmap(block.cast(), size);
            block = next;
        }
    }
}

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
        match is_mapped(&layout) {
            true if GIVEN_UP.load(Ordering::Relaxed) > 0 => list(block, layout.size()),
            // SAFETY: mapped above with this very size.
            true => unsafe { unmap(block, layout.size()) },
            false => unsafe { System.dealloc(block, layout) },
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
    let block = unsafe { libc::mmap(null_mut(), size, access, kind, -1, 0) };
    if block == libc::MAP_FAILED { null_mut() } else { block.cast() }
}

unsafe fn unmap(block: *mut u8, size: usize) {
    // SAFETY: a whole mapping of ours. That can fail only where the system has no room to note it: then it stays.
    let _ = unsafe { libc::munmap(block.cast(), size) };
}

unsafe fn remap(block: *mut u8, size: usize, wanted: usize) -> *mut u8 {
    // SAFETY: a whole mapping of ours, which may move.
    let moved = unsafe { libc::mremap(block.cast(), size, wanted, libc::MREMAP_MAYMOVE) };
    if moved == libc::MAP_FAILED { null_mut() } else { moved.cast() }
}
