//! The topics that have waiters, with their wait groups. Both exist while they have waiters.

use std::collections::HashMap;

use crate::{
    line::Line,
    timers::TimerId,
    topic::{Topic, WaitGroup, WaitKey},
    view::DoorCounters,
    waiters::WaiterId,
};

/// A [`WaitKey`] by the indexes of its topic and group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeySlot {
    pub(crate) topic: u32,
    pub(crate) group: u32,
}

#[derive(Debug)]
pub(crate) struct TopicEntry {
    pub(crate) name: Topic,
    pub(crate) door: u8,
    pub(crate) waiters: u32,
    groups: Vec<Option<GroupEntry>>,
}

#[derive(Debug)]
pub(crate) struct GroupEntry {
    pub(crate) name: WaitGroup,
    waiters: u32,
    /// The waiters that can be given a wake.
    pub(crate) line: Line,
    /// The recheck timer.
    pub(crate) recheck: Option<TimerId>,
}

#[derive(Debug, Default)]
pub(crate) struct Topics {
    entries: Vec<Option<TopicEntry>>,
    free: Vec<u32>,
    by_name: HashMap<Topic, u32>,
    doors: Vec<(String, DoorCounters)>,
    /// The group that was made last. Waiters of one group at many topics share its name instead of
    /// keeping a copy each.
    recent_group: WaitGroup,
}

fn index(at: usize) -> u32 {
    u32::try_from(at).expect("topics and groups fit in 32 bits")
}

impl Topics {
    pub(crate) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(crate) fn find(&self, name: &Topic) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn find_key(&self, key: &WaitKey) -> Option<KeySlot> {
        let topic = self.find(&key.topic)?;
        let group = self.get(topic).position(&key.group)?;
        Some(KeySlot { topic, group })
    }

    pub(crate) fn get(&self, topic: u32) -> &TopicEntry {
        self.entries[topic as usize]
            .as_ref()
            .expect("the topic has waiters")
    }

    fn get_mut(&mut self, topic: u32) -> &mut TopicEntry {
        self.entries[topic as usize]
            .as_mut()
            .expect("the topic has waiters")
    }

    pub(crate) fn group(&self, slot: KeySlot) -> &GroupEntry {
        self.get(slot.topic).groups[slot.group as usize]
            .as_ref()
            .expect("the group has waiters")
    }

    pub(crate) fn group_mut(&mut self, slot: KeySlot) -> &mut GroupEntry {
        self.get_mut(slot.topic).groups[slot.group as usize]
            .as_mut()
            .expect("the group has waiters")
    }

    /// Puts a new waiter at the end of `key`'s line.
    pub(crate) fn slot(&mut self, key: &WaitKey, seq: u64, id: WaiterId) -> KeySlot {
        let topic = self
            .find(&key.topic)
            .unwrap_or_else(|| self.make(key.topic.clone()));
        let group = self.get(topic).position(&key.group).unwrap_or_else(|| {
            if self.recent_group != key.group {
                self.recent_group = key.group.clone();
            }
            let name = self.recent_group.clone();
            self.get_mut(topic).make(name)
        });
        self.get_mut(topic).waiters += 1;
        let slot = KeySlot { topic, group };
        let group = self.group_mut(slot);
        group.waiters += 1;
        group.line.insert(seq, id);
        slot
    }

    fn make(&mut self, name: Topic) -> u32 {
        let door = self.door(name.door());
        let entry = Some(TopicEntry {
            name: name.clone(),
            door,
            waiters: 0,
            groups: Vec::new(),
        });
        let topic = match self.free.pop() {
            Some(topic) => {
                self.entries[topic as usize] = entry;
                topic
            }
            None => {
                self.entries.push(entry);
                index(self.entries.len() - 1)
            }
        };
        self.by_name.insert(name, topic);
        topic
    }

    /// Removes a waiter from `slot`. After the last one it returns the recheck timer, which is to be
    /// cancelled.
    pub(crate) fn vacate(&mut self, slot: KeySlot) -> Option<TimerId> {
        let group = self.group_mut(slot);
        group.waiters -= 1;
        let is_empty = group.waiters == 0;
        let recheck = group.recheck.take_if(|_| is_empty);
        let entry = self.get_mut(slot.topic);
        if is_empty {
            entry.groups[slot.group as usize] = None;
        }
        entry.waiters -= 1;
        if entry.waiters == 0 {
            let entry = self.entries[slot.topic as usize]
                .take()
                .expect("the topic is there");
            self.by_name.remove(&entry.name);
            self.free.push(slot.topic);
        }
        recheck
    }

    /// The groups at `topics`, each with its slots at all of them.
    pub(crate) fn groups_of(&self, topics: &[u32], only: Option<&WaitGroup>) -> Vec<Vec<KeySlot>> {
        let mut found: Vec<(&WaitGroup, Vec<KeySlot>)> = Vec::new();
        for &topic in topics {
            for (position, entry) in self.get(topic).groups.iter().enumerate() {
                let Some(entry) = entry else { continue };
                if only.is_some_and(|only| *only != entry.name) {
                    continue;
                }
                let slot = KeySlot {
                    topic,
                    group: index(position),
                };
                // A single topic, the usual case, has each group once: no search.
                let known = if topics.len() == 1 {
                    None
                } else {
                    found.iter_mut().find(|(name, _)| **name == entry.name)
                };
                match known {
                    Some((_, slots)) => slots.push(slot),
                    None => found.push((&entry.name, vec![slot])),
                }
            }
        }
        found.into_iter().map(|(_, slots)| slots).collect()
    }

    /// Every key of `door`, with the number of its waiters.
    pub(crate) fn keys_of<'a>(
        &'a self,
        door: &'a str,
    ) -> impl Iterator<Item = (&'a Topic, &'a WaitGroup, usize)> {
        let door = self.doors.iter().position(|(name, _)| name == door);
        let of_door = self
            .entries
            .iter()
            .flatten()
            .filter(move |topic| Some(usize::from(topic.door)) == door);
        of_door.flat_map(|topic| {
            let groups = topic.groups.iter().flatten();
            groups.map(|group| (&topic.name, &group.name, group.waiters as usize))
        })
    }

    pub(crate) fn doors(&self) -> &[(String, DoorCounters)] {
        &self.doors
    }

    fn door(&mut self, name: &str) -> u8 {
        let known = self.doors.iter().position(|(door, _)| door == name);
        let door = known.unwrap_or_else(|| {
            self.doors.push((name.to_owned(), DoorCounters::default()));
            self.doors.len() - 1
        });
        u8::try_from(door).expect("there are a handful of doors")
    }

    /// `None` for a door that has never had a waiter: its wakes are not counted.
    pub(crate) fn known_counters(&mut self, door: &str) -> Option<&mut DoorCounters> {
        let mut doors = self.doors.iter_mut();
        doors
            .find(|(name, _)| name == door)
            .map(|(_, counters)| counters)
    }

    pub(crate) fn counters(&mut self, topic: &Topic) -> &mut DoorCounters {
        let door = self.door(topic.door());
        &mut self.doors[usize::from(door)].1
    }

    pub(crate) fn counters_at(&mut self, topic: u32) -> &mut DoorCounters {
        let door = self.get(topic).door;
        &mut self.doors[usize::from(door)].1
    }
}

impl TopicEntry {
    fn position(&self, group: &WaitGroup) -> Option<u32> {
        let mut groups = self.groups.iter();
        groups
            .position(|entry| entry.as_ref().is_some_and(|e| e.name == *group))
            .map(index)
    }

    fn make(&mut self, name: WaitGroup) -> u32 {
        let entry = Some(GroupEntry {
            name,
            waiters: 0,
            line: Line::Empty,
            recheck: None,
        });
        if let Some(gap) = self.groups.iter().position(Option::is_none) {
            self.groups[gap] = entry;
            return index(gap);
        }
        // Most topics have one group: the usual growth to four would be most of what they cost.
        self.groups.reserve_exact(1);
        self.groups.push(entry);
        index(self.groups.len() - 1)
    }
}
