//! The machine that was measured, as its kernel and the server describe it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::sys::stat::{major, makedev, minor};
use postgres::Client;
use serde::{Deserialize, Serialize};

use crate::Error;

/// Facts that decide what a VACUUM takes. What is not known is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// How files were dropped from the kernel's cache: drop_caches, posix_fadvise; empty
    /// where they were to stay.
    pub cache_dropped_by: String,
    /// The processor's model.
    pub cpu: String,
    /// Processors that the kernel has online.
    pub cpus: usize,
    /// Of memory.
    pub memory_bytes: u64,
    /// Name and release.
    pub kernel: String,
    /// Of the folder that was measured.
    pub file_system: String,
    /// Those of its mount.
    pub mount_options: String,
    /// The block device's name, with those below it.
    pub device: String,
    /// Vendor's name of the device or of those below it.
    pub device_model: String,
    /// Whether the kernel takes it for a disk that turns.
    pub device_rotational: Option<u8>,
    /// The I/O scheduler.
    pub device_scheduler: String,
    /// Requests that its queue holds.
    pub device_queue_requests: Option<u64>,
    /// How far the kernel reads ahead.
    pub device_readahead_kb: Option<u64>,
    /// As server_version says.
    pub server_version: String,
    /// Settings away from their defaults, but for those that the lab always makes.
    pub server_settings: String,
    /// The version of this program.
    pub lab_version: String,
}

impl Machine {
    /// The facts of the storage below `folder` and of this machine.
    ///
    /// # Errors
    ///
    /// Where the kernel does not tell what every Linux has.
    pub fn of(folder: &Path) -> Result<Machine, Error> {
        let memory = fs::read_to_string("/proc/meminfo")?;
        let kilobytes =
            value_of(&memory, "MemTotal").and_then(|value| value.strip_suffix(" kB")?.parse().ok());
        let cpus = fs::read_to_string("/proc/cpuinfo")?;
        let mount = Mount::of(folder)?;
        let mut machine = Machine {
            cpu: value_of(&cpus, "model name").unwrap_or_else(|| std::env::consts::ARCH.into()),
            cpus: cpus.lines().filter(|line| line.starts_with("processor")).count(),
            memory_bytes: kilobytes.unwrap_or(0) * 1024,
            kernel: format!("{} {}", read("/proc/sys/kernel/ostype"), read("/proc/sys/kernel/osrelease")),
            lab_version: env!("CARGO_PKG_VERSION").into(),
            ..Machine::default()
        };
        if let Some(device) = mount.device(folder) {
            machine.describe(&device);
        }
        machine.file_system = mount.file_system;
        machine.mount_options = mount.options;
        Ok(machine)
    }

    fn describe(&mut self, device: &Device) {
        let queue = |name: &str| read(device.whole().join("queue").join(name));
        let below = device.below();
        let names: Vec<String> = below.iter().map(Device::name).collect();
        let on = if names.is_empty() { String::new() } else { format!(" on {}", names.join(", ")) };
        let mut models: Vec<String> =
            if below.is_empty() { vec![device.model()] } else { below.iter().map(Device::model).collect() };
        models.dedup();
        self.device = format!("{}{on}", device.name());
        self.device_model = models.join(", ");
        self.device_rotational = queue("rotational").parse().ok();
        // As in "none [mq-deadline] kyber".
        let schedulers = queue("scheduler");
        let chosen = schedulers.split(['[', ']']).nth(1);
        self.device_scheduler = chosen.unwrap_or(&schedulers).into();
        self.device_queue_requests = queue("nr_requests").parse().ok();
        self.device_readahead_kb = queue("read_ahead_kb").parse().ok();
    }

    /// Adds what the server says.
    ///
    /// # Errors
    ///
    /// Those of the server.
    pub fn ask_server(&mut self, client: &mut Client) -> Result<(), Error> {
        self.server_version = client.query_one("SHOW server_version", &[])?.get(0);
        let settings = client.query(
            "SELECT name || '=' || current_setting(name) FROM pg_settings
             WHERE source IN ('configuration file', 'command line') AND name <> ALL ($1)
               AND setting IS DISTINCT FROM boot_val AND name NOT LIKE 'vacuum_skip.%'
             ORDER BY name",
            &[&crate::cluster::OWN_SETTINGS.as_slice()],
        )?;
        let settings: Vec<String> = settings.iter().map(|row| row.get(0)).collect();
        self.server_settings = settings.join("; ");
        Ok(())
    }
}

/// Of lines such as `name : value`, as in /proc.
fn value_of(text: &str, name: &str) -> Option<String> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.find(|(found, _)| found.trim() == name).map(|(_, value)| value.trim().to_owned())
}

/// A file's text; nothing where there is none.
fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// What is mounted where a folder is.
struct Mount {
    file_system: String,
    options: String,
    source: PathBuf,
}

impl Mount {
    fn of(folder: &Path) -> Result<Mount, Error> {
        let folder = folder.canonicalize()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let found = mounts.lines().filter_map(parse_mount).filter(|(point, _)| folder.starts_with(point));
        // The last of the longest: a later mount hides an earlier one.
        let (_, mount) = found.max_by_key(|(point, _)| point.as_os_str().len()).ok_or("no mount is known")?;
        Ok(mount)
    }

    /// The block device; that of the mount's source where the file system has a device
    /// number of its own, as btrfs.
    fn device(&self, folder: &Path) -> Option<Device> {
        let number = fs::metadata(folder).ok()?.dev();
        let source = || Device::numbered(fs::metadata(&self.source).ok()?.rdev());
        Device::numbered(number).or_else(source)
    }
}

/// The mount point, and the rest, of a line of /proc/self/mountinfo.
fn parse_mount(line: &str) -> Option<(PathBuf, Mount)> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(4);
    let mut file_system = file_system.split(' ');
    // Spaces are written in octal.
    let path = |text: &str| PathBuf::from(text.replace("\\040", " "));
    Some((
        path(mount.next()?),
        Mount {
            options: mount.next()?.into(),
            file_system: file_system.next()?.into(),
            source: path(file_system.next()?),
        },
    ))
}

/// A block device, as its folder in /sys.
struct Device(PathBuf);

impl Device {
    fn numbered(number: u64) -> Option<Device> {
        let number = makedev(major(number), minor(number));
        let link = format!("/sys/dev/block/{}:{}", major(number), minor(number));
        fs::canonicalize(link).ok().map(Device)
    }

    fn name(&self) -> String {
        self.0.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The device of a partition.
    fn whole(&self) -> &Path {
        let parent = self.0.parent().filter(|_| self.0.join("partition").exists());
        parent.unwrap_or(&self.0)
    }

    /// Those that make it up, of a RAID or a logical volume.
    fn below(&self) -> Vec<Device> {
        let entries = fs::read_dir(self.whole().join("slaves")).into_iter().flatten().flatten();
        let mut devices: Vec<PathBuf> =
            entries.filter_map(|entry| fs::canonicalize(entry.path()).ok()).collect();
        devices.sort();
        devices.into_iter().map(Device).collect()
    }

    /// The vendor's name of the model, or else the driver's.
    fn model(&self) -> String {
        let folder = self.whole().join("device");
        let model = read(folder.join("model"));
        if !model.is_empty() {
            return model;
        }
        let driver = fs::canonicalize(folder.join("driver")).unwrap_or_default();
        driver.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Machine, parse_mount, value_of};

    #[test]
    fn a_mount_is_read_as_the_kernel_documents_it() {
        let line = r"36 35 98:0 / /mnt/my\040disk rw,noatime master:1 - ext3 /dev/sda1 rw,errors=continue";
        let (point, mount) = parse_mount(line).unwrap();
        assert_eq!(point, Path::new("/mnt/my disk"));
        assert_eq!((mount.options.as_str(), mount.file_system.as_str()), ("rw,noatime", "ext3"));
        assert_eq!(mount.source, Path::new("/dev/sda1"));
    }

    #[test]
    fn values_are_found_by_the_whole_name() {
        let text = "model name2\t: no\nmodel name\t: A: B\n";
        assert_eq!(value_of(text, "model name").as_deref(), Some("A: B"));
        assert_eq!(value_of(text, "model"), None);
    }

    #[test]
    fn this_machine_has_a_processor_and_memory() {
        let machine = Machine::of(Path::new("/")).unwrap();
        assert!(machine.cpus >= 1 && machine.memory_bytes > 1 << 24, "{machine:?}");
        assert!(machine.kernel.starts_with("Linux ") && !machine.file_system.is_empty(), "{machine:?}");
    }
}
