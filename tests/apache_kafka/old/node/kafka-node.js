// Sends 20 messages, receives them in a group, and prints how many came, and how many of these differ.
// node kafka-node.js BOOTSTRAP TOPIC [MECHANISM FOLDER]: bob proves who he is, under TLS.

const { readFileSync } = require("fs");
const { ConsumerGroup, KafkaClient, Producer } = require("kafka-node");

const COUNT = 20;
const [kafkaHost, topic, mechanism, folder] = process.argv.slice(2);
const proof = mechanism && {
  sasl: { mechanism, username: "bob", password: "builder" },
  sslOptions: { ca: readFileSync(`${folder}/authority.crt`) },
};

function fail(error) {
  console.error(error);
  process.exit(1);
}

function receive() {
  const heard = [];
  const options = { kafkaHost, groupId: topic, fromOffset: "earliest", ...proof };
  const group = new ConsumerGroup(options, [topic]);
  group.on("error", fail);
  group.on("message", (message) => {
    heard.push(message.value);
    if (heard.length === COUNT) {
      console.log(heard.length, new Set(heard).size);
      group.close(true, () => process.exit(0));
    }
  });
}

const client = new KafkaClient({ kafkaHost, ...proof });
const producer = new Producer(client);
producer.on("error", fail);
producer.on("ready", () => {
  const messages = Array.from({ length: COUNT }, (_, number) => String(number));
  producer.send([{ topic, messages }], (error) => {
    if (error) fail(error);
    client.close(receive);
  });
});
