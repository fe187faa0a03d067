// Sends 20 messages, receives them in a group, and prints how many came, and how many of these differ.
// node no-kafka.js BOOTSTRAP TOPIC

const { EARLIEST_OFFSET, GroupConsumer, Producer } = require("no-kafka");

const COUNT = 20;
const [connectionString, topic] = process.argv.slice(2);
const logger = { logLevel: 0 }; // or it logs among the results

async function send() {
  const producer = new Producer({ connectionString, logger });
  await producer.init();
  for (let number = 0; number < COUNT; number += 1) {
    const [sent] = await producer.send({ topic, message: { value: String(number) } });
    if (sent.error) throw sent.error;
  }
  await producer.end();
}

function receive() {
  const heard = [];
  const options = { connectionString, logger, groupId: topic, startingOffset: EARLIEST_OFFSET };
  const consumer = new GroupConsumer(options);
  return new Promise((resolve, reject) => {
    const handler = async (messages, _topic, partition) => {
      for (const { offset, message } of messages) {
        heard.push(message.value.toString());
        await consumer.commitOffset({ topic, partition, offset });
      }
      if (heard.length === COUNT) {
        console.log(heard.length, new Set(heard).size);
        consumer.end().then(resolve, reject);
      }
    };
    consumer.init([{ subscriptions: [topic], handler }]).catch(reject);
  });
}

send().then(receive).then(() => process.exit(0), (error) => {
  console.error(error);
  process.exit(1);
});
