// Strange: it is written in Rust, whose symbols end with a checksum and whose panics go through frames.
#[inline(never)]
fn square(n: u64) -> u64 {
    n.wrapping_mul(n)
}

struct List {
    items: Vec<u64>,
}

impl List {
    #[inline(never)]
    fn push(&mut self, n: u64) {
        self.items.push(square(n));
    }
}

#[inline(never)]
fn risky(n: u64) -> u64 {
    if n % 5 == 0 {
        panic!("five");
    }
    n
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let mut list = List { items: Vec::new() };
    let mut caught = 0;
    for n in 0..20 {
        list.push(n);
        caught += u64::from(std::panic::catch_unwind(|| risky(n)).is_err());
    }
    println!("{} {}", list.items.iter().sum::<u64>(), caught);
}
