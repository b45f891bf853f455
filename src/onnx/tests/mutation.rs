//! Damages protobuf messages: at random, repeatably, and deep inside, as lengths are written anew.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Numbers that arithmetic on shapes stumbles over.
const NUMBERS: [u64; 14] = [
    0,
    1,
    2,
    7,
    0x7f,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 40,
    (1 << 62) + 1,
    i64::MAX as u64,
    i64::MIN as u64,
    u64::MAX,
];

/// Nesting up to which bytes are looked into.
const MAX_DEPTH: usize = 12;

/// One field of a message.
#[derive(Debug, Clone, PartialEq)]
struct Field {
    number: u64,
    content: Content,
}

#[derive(Debug, Clone, PartialEq)]
enum Content {
    Varint(u64),
    Fixed64([u8; 8]),
    Fixed32([u8; 4]),
    Bytes(Vec<u8>),
    Message(Vec<Field>),
}

/// A source of damage.
pub(super) struct Mutator {
    rng: ChaCha8Rng,
    /// Messages that fields are taken from.
    seeds: Vec<Vec<Field>>,
}

impl Mutator {
    /// Takes well-formed messages; the same ones and the same number give the same damage.
    pub(super) fn new(seeds: &[Vec<u8>], number: u64) -> Self {
        let parse = |seed: &Vec<u8>| parse(seed, 0).expect("seeds are well-formed");
        Self {
            rng: ChaCha8Rng::seed_from_u64(number),
            seeds: seeds.iter().map(parse).collect(),
        }
    }

    /// Returns a damaged copy of one of the messages.
    pub(super) fn damaged(&mut self) -> Vec<u8> {
        let seed = self.below(self.seeds.len());
        let mut message = self.seeds[seed].clone();
        for _ in 0..=self.below(4) {
            self.change(&mut message);
        }
        let mut bytes = Vec::new();
        write(&message, &mut bytes);
        match self.below(10) {
            0 => {
                let len = self.below(bytes.len() + 1);
                bytes.truncate(len);
            }
            1 if !bytes.is_empty() => {
                let at = self.below(bytes.len());
                bytes[at] ^= 1 << self.below(8);
            }
            2 => {
                let at = self.below(bytes.len() + 1);
                let mut spliced = Vec::new();
                write_varint(self.number(), &mut spliced);
                bytes.splice(at..at, spliced);
            }
            _ => {}
        }
        bytes
    }

    fn below(&mut self, n: usize) -> usize {
        self.rng.random_range(0..n.max(1))
    }

    fn number(&mut self) -> u64 {
        NUMBERS[self.below(NUMBERS.len())]
    }

    /// Changes one field somewhere inside.
    fn change(&mut self, message: &mut Vec<Field>) {
        let total: usize = message.iter().map(Field::count).sum();
        let mut rest = self.below(total);
        let mut at = message;
        while let Some(idx) = at.iter().position(|field| {
            let is_here = rest < field.count();
            if !is_here {
                rest -= field.count();
            }
            is_here
        }) {
            // The field itself counts first, what is inside of it after that.
            if rest == 0 || !matches!(at[idx].content, Content::Message(_)) {
                return self.change_at(at, idx);
            }
            rest -= 1;
            match &mut at[idx].content {
                Content::Message(inner) => at = inner,
                _ => return,
            }
        }
    }

    fn change_at(&mut self, message: &mut Vec<Field>, idx: usize) {
        match self.below(8) {
            0 => {
                message.remove(idx);
            }
            1 => {
                let copy = message[idx].clone();
                let at = self.below(message.len() + 1);
                message.insert(at, copy);
            }
            2 => {
                let other = self.below(message.len());
                message.swap(idx, other);
            }
            3 => {
                let seed = self.below(self.seeds.len());
                let number = message[idx].number;
                if let Some(field) = self.borrowed(seed, number) {
                    message[idx] = field;
                }
            }
            4 => message[idx].number = 1 + self.below(25) as u64,
            _ => self.change_content(message, idx),
        }
    }

    /// Returns a field of this number from a seed.
    fn borrowed(&mut self, seed: usize, number: u64) -> Option<Field> {
        let mut found = Vec::new();
        let mut open: Vec<&Field> = self.seeds[seed].iter().collect();
        while let Some(field) = open.pop() {
            if field.number == number {
                found.push(field);
            }
            if let Content::Message(inner) = &field.content {
                open.extend(inner);
            }
        }
        let idx = self.rng.random_range(0..found.len().max(1));
        found.get(idx).map(|field| (*field).clone())
    }

    fn change_content(&mut self, message: &mut [Field], idx: usize) {
        let number = self.number();
        let at = self.rng.random::<u64>() as usize;
        match &mut message[idx].content {
            Content::Varint(value) => *value = number,
            Content::Fixed64(bytes) => *bytes = number.to_le_bytes(),
            // Also what is not a number at all.
            Content::Fixed32(bytes) => *bytes = ((number as u32) << 20).to_le_bytes(),
            Content::Bytes(bytes) if bytes.is_empty() => bytes.push(at as u8),
            Content::Bytes(bytes) => {
                let at = at % bytes.len();
                match number % 4 {
                    0 => bytes.truncate(at),
                    1 => bytes.push(number as u8),
                    2 => {
                        let mut varint = Vec::new();
                        write_varint(number, &mut varint);
                        bytes.splice(at..=at, varint);
                    }
                    _ => bytes[at] ^= 1 << (number % 8),
                }
            }
            Content::Message(fields) => fields.reverse(),
        }
    }
}

impl Field {
    /// Returns how many fields this is, with those inside.
    fn count(&self) -> usize {
        match &self.content {
            Content::Message(fields) => 1 + fields.iter().map(Self::count).sum::<usize>(),
            _ => 1,
        }
    }
}

/// Reads a message; bytes that are one themselves, written in the same way, are taken for one.
fn parse(mut bytes: &[u8], depth: usize) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = read_varint(&mut bytes)?;
        let number = tag >> 3;
        let content = match tag & 7 {
            0 => Content::Varint(read_varint(&mut bytes)?),
            1 => Content::Fixed64(take(&mut bytes, 8)?.try_into().ok()?),
            5 => Content::Fixed32(take(&mut bytes, 4)?.try_into().ok()?),
            2 => {
                let len = read_varint(&mut bytes)? as usize;
                let inner = take(&mut bytes, len)?;
                let message = (depth < MAX_DEPTH && len > 1).then(|| parse(inner, depth + 1));
                match message.flatten().filter(|fields| is_same(fields, inner)) {
                    Some(fields) => Content::Message(fields),
                    None => Content::Bytes(inner.to_vec()),
                }
            }
            _ => return None,
        };
        if !(1..100).contains(&number) {
            return None;
        }
        fields.push(Field { number, content });
    }
    Some(fields)
}

fn is_same(fields: &[Field], bytes: &[u8]) -> bool {
    let mut written = Vec::new();
    write(fields, &mut written);
    written == bytes
}

fn write(fields: &[Field], bytes: &mut Vec<u8>) {
    for Field { number, content } in fields {
        let kind = match content {
            Content::Varint(_) => 0,
            Content::Fixed64(_) => 1,
            Content::Bytes(_) | Content::Message(_) => 2,
            Content::Fixed32(_) => 5,
        };
        write_varint(number << 3 | kind, bytes);
        match content {
            Content::Varint(value) => write_varint(*value, bytes),
            Content::Fixed64(value) => bytes.extend(value),
            Content::Fixed32(value) => bytes.extend(value),
            Content::Bytes(inner) => {
                write_varint(inner.len() as u64, bytes);
                bytes.extend(inner);
            }
            Content::Message(inner) => {
                let mut nested = Vec::new();
                write(inner, &mut nested);
                write_varint(nested.len() as u64, bytes);
                bytes.extend(nested);
            }
        }
    }
}

fn take<'a>(bytes: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (head, tail) = bytes.split_at_checked(n)?;
    *bytes = tail;
    Some(head)
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn write_varint(mut value: u64, bytes: &mut Vec<u8>) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}
