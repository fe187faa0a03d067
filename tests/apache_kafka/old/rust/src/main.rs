//! Sends 20 messages, receives them in a group, and prints how many came, and how many of these differ.
//!
//!     old BOOTSTRAP TOPIC

use std::collections::HashSet;
use std::env;

use kafka::consumer::{Consumer, FetchOffset, GroupOffsetStorage};
use kafka::error::Error;
use kafka::producer::{Producer, Record};

const COUNT: usize = 20;

fn main() -> Result<(), Error> {
    let words: Vec<String> = env::args().skip(1).collect();
    let (bootstrap, topic) = (vec![words[0].clone()], &words[1]);
    let mut producer = Producer::from_hosts(bootstrap.clone()).create()?;
    for number in 0..COUNT {
        producer.send(&Record::from_value(topic, number.to_string()))?;
    }
    let mut consumer = Consumer::from_hosts(bootstrap)
        .with_topic(topic.clone())
        .with_group(topic.clone())
        .with_fallback_offset(FetchOffset::Earliest)
        .with_offset_storage(Some(GroupOffsetStorage::Kafka))
        .create()?;
    let mut heard: Vec<Vec<u8>> = Vec::new();
    while heard.len() < COUNT {
        for set in consumer.poll()?.iter() {
            heard.extend(set.messages().iter().map(|it| it.value.to_vec()));
            consumer.consume_messageset(set)?;
        }
        consumer.commit_consumed()?;
    }
    println!("{} {}", heard.len(), heard.iter().collect::<HashSet<_>>().len());
    Ok(())
}
