//! Binary codes of Bose, Chaudhuri and Hocquenghem, over the field with 2^m elements.
//!
//! The length is n = 2^m − 1. The generator polynomial g has the roots α, α², …, α^(d−1), with α a primitive element, so
//! that two code words differ in at least d places. It is the product of the minimal polynomials of the odd powers,
//! each with a root for every member of a cyclotomic coset {i, 2i, 4i, …} mod n. A word is a message polynomial times g.
//!
//! Reference: MacWilliams & Sloane, The theory of error-correcting codes (1977), chapters 7 and 9.

/// Primitive polynomials over the field with two elements, by degree from 2. Bit i is the coefficient of xⁱ.
const PRIMITIVE: [u32; 15] = [
    0b111,
    0b1011,
    0b1_0011,
    0b10_0101,
    0b100_0011,
    0b1000_1001,
    0b1_0001_1101,
    0b10_0001_0001,
    0b100_0000_1001,
    0b1000_0000_0101,
    0b1_0000_0101_0011,
    0b10_0000_0001_1011,
    0b100_0100_0100_0011,
    0b1000_0000_0000_0011,
    0b1_0001_0000_0000_1011,
];

/// The longest code has 2^16 − 1 places.
pub(super) const LARGEST_DEGREE: u32 = 16;

/// A field with 2^m elements, by logarithms to the base of a primitive element.
struct Field {
    order: usize,
    powers: Vec<u32>,
    logarithms: Vec<usize>,
}

impl Field {
    fn new(degree: u32) -> Field {
        let (order, polynomial) = ((1usize << degree) - 1, PRIMITIVE[degree as usize - 2]);
        let (mut powers, mut logarithms) = (Vec::with_capacity(order), vec![0; order + 1]);
        let mut power = 1u32;
        for exponent in 0..order {
            powers.push(power);
            logarithms[power as usize] = exponent;
            power <<= 1;
            if power > order as u32 {
                power ^= polynomial;
            }
        }
        Field { order, powers, logarithms }
    }

    fn times(&self, a: u32, b: u32) -> u32 {
        if a == 0 || b == 0 {
            return 0;
        }
        self.powers[(self.logarithms[a as usize] + self.logarithms[b as usize]) % self.order]
    }

    /// The polynomial with coefficients 0 and 1 whose roots are α to these exponents, lowest coefficient first.
    fn minimal(&self, coset: &[usize]) -> Vec<bool> {
        let mut product = vec![1u32];
        for &exponent in coset {
            let root = self.powers[exponent];
            let mut next = vec![0; product.len() + 1];
            for (place, &coefficient) in product.iter().enumerate() {
                next[place + 1] ^= coefficient;
                next[place] ^= self.times(coefficient, root);
            }
            product = next;
        }
        product.into_iter().map(|coefficient| coefficient == 1).collect()
    }
}

/// a·b over the field with two elements.
fn product(a: &[bool], b: &[bool]) -> Vec<bool> {
    let mut product = vec![false; a.len() + b.len() - 1];
    for (place, _) in a.iter().enumerate().filter(|(_, set)| **set) {
        product[place..].iter_mut().zip(b).for_each(|(sum, &term)| *sum ^= term);
    }
    product
}

/// A code.
pub(super) struct Bch {
    /// Number of places of a word.
    pub(super) length: usize,
    /// Number of places in which two words differ at least.
    pub(super) distance: usize,
    generator: Vec<bool>,
}

impl Bch {
    /// The code of length 2^degree − 1 with the largest distance among those with messages of at least `bits` bits.
    pub(super) fn with_messages(degree: u32, bits: usize) -> Option<Bch> {
        let field = Field::new(degree);
        let length = field.order;
        let mut best = None;
        let (mut covered, mut generator) = (vec![false; length], vec![true]);
        let mut power = 1;
        while power < length {
            let mut coset = Vec::new();
            let mut member = power;
            while !covered[member] {
                covered[member] = true;
                coset.push(member);
                member = 2 * member % length;
            }
            if length < generator.len() - 1 + coset.len() + bits {
                break;
            }
            generator = product(&generator, &field.minimal(&coset));
            // The roots α to the powers 1, 2, …, up to the first that is not covered.
            let roots = (1..length).take_while(|&power| covered[power]).count();
            best = Some(Bch { length, distance: roots + 1, generator: generator.clone() });
            power = roots + 1;
        }
        best
    }

    /// Number of bits of a message.
    pub(super) fn bits(&self) -> usize {
        self.length + 1 - self.generator.len()
    }

    /// The word of a message, which has [`Bch::bits`] bits.
    pub(super) fn word(&self, message: &[bool]) -> Vec<bool> {
        let mut word = product(message, &self.generator);
        word.resize(self.length, false);
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_the_primitive_element_are_all_elements() {
        for degree in 2..=LARGEST_DEGREE {
            let field = Field::new(degree);
            let mut powers = field.powers.clone();
            powers.sort_unstable();
            powers.dedup();
            assert_eq!(powers.len(), field.order, "degree {degree}");
        }
    }

    #[test]
    fn words_differ_in_as_many_places_as_claimed() {
        // The classical codes (15, 7, 5), (15, 5, 7) and (31, 6, 15).
        for (degree, bits, found, distance) in [(4, 6, 7, 5), (4, 5, 5, 7), (5, 6, 6, 15), (3, 1, 1, 7)] {
            let code = Bch::with_messages(degree, bits).expect("a code");
            assert_eq!((code.bits(), code.distance), (found, distance));
            let words: Vec<Vec<bool>> = (0..1u32 << found)
                .map(|message| code.word(&(0..found).map(|bit| message >> bit & 1 == 1).collect::<Vec<_>>()))
                .collect();
            for (at, a) in words.iter().enumerate() {
                for b in &words[..at] {
                    assert!(a.iter().zip(b).filter(|(a, b)| a != b).count() >= distance);
                }
            }
        }
        assert!(Bch::with_messages(3, 7).is_none());
    }
}
