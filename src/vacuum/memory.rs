//! What may be done with this process's memory, and where: the mappings that Linux
//! lists in `/proc/self/maps` (proc_pid_maps(5)).

use std::ops::Range;

use crate::server::table_am::Protection;

/// The mappings of a process.
#[derive(Debug)]
pub struct Mappings(Vec<Mapping>);

/// Adjacent pages of one kind.
#[derive(Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Addresses of its bytes.
    pub addresses: Range<usize>,
    /// What may be done with it.
    pub protection: Protection,
}

impl Mappings {
    /// Those of this process. None on a system that does not tell.
    pub fn of_this_process() -> Option<Mappings> {
        Mappings::parse(&std::fs::read_to_string("/proc/self/maps").ok()?)
    }

    /// Reads the list; None if it is none.
    pub fn parse(list: &str) -> Option<Mappings> {
        list.lines().map(parse_line).collect::<Option<_>>().map(Mappings)
    }

    /// The mapping that `address` is in.
    pub fn at(&self, address: usize) -> Option<&Mapping> {
        self.0.iter().find(|mapping| mapping.addresses.contains(&address))
    }
}

/// For example `555555554000-555555628000 r-xp 00000000 08:01 1234 /usr/bin/cat`.
fn parse_line(line: &str) -> Option<Mapping> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    let &[read, write, execute, _shared] = words.next()?.as_bytes() else { return None };
    Some(Mapping {
        addresses: address(start)?..address(end)?,
        protection: Protection { read: read == b'r', write: write == b'w', execute: execute == b'x' },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
555555554000-555555628000 r--p 00000000 08:01 1234                       /usr/bin/post gres
555555628000-555555c00000 r-xp 000d4000 08:01 1234                       /usr/bin/post gres
555555c00000-555555c08000 rw-p 00000000 00:00 0
7ffff7fc0000-7ffff7fc4000 ---p 00000000 00:00 0                          [vvar]
";

    fn protection_at(address: usize) -> Option<(bool, bool, bool)> {
        let mappings = Mappings::parse(LIST).unwrap();
        mappings.at(address).map(|Mapping { protection: it, .. }| (it.read, it.write, it.execute))
    }

    #[test]
    fn an_address_has_the_protection_of_its_mapping() {
        assert_eq!(protection_at(0x5555_5555_4000), Some((true, false, false)), "first byte");
        assert_eq!(protection_at(0x5555_5562_7fff), Some((true, false, false)), "last byte");
        assert_eq!(protection_at(0x5555_5562_8000), Some((true, false, true)), "next mapping");
        assert_eq!(protection_at(0x5555_55c0_0001), Some((true, true, false)), "without a file");
        assert_eq!(protection_at(0x7fff_f7fc_0000), Some((false, false, false)), "without access");
    }

    #[test]
    fn an_address_between_mappings_is_in_none() {
        assert_eq!(protection_at(0), None);
        assert_eq!(protection_at(0x5555_5555_3fff), None);
        assert_eq!(protection_at(0x5555_55c0_8000), None);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for list in ["x", "1-2", "1-2 r--", "12 r--p", "1-z r--p 0 0 0", &format!("{LIST}\n")] {
            assert!(Mappings::parse(list).is_none(), "{list:?}");
        }
    }

    #[test]
    fn this_process_runs_code_and_reads_constants() {
        let mappings = Mappings::of_this_process().unwrap();
        let code = mappings.at(parse_line as *const () as usize).unwrap().protection;
        assert!(code.execute && !code.write, "{code:?}");
        let constant = mappings.at(LIST.as_ptr() as usize).unwrap().protection;
        assert!(constant.read && !constant.write, "{constant:?}");
    }
}
