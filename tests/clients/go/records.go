package main

import (
	"context"
	"fmt"

	"github.com/apache/pulsar-client-go/pulsar"
)

// reading is a record with a field of each kind that distinguishes schemas.
type reading struct {
	Sensor string `json:"sensor" avro:"sensor"`
	Value  int    `json:"value" avro:"value"`
}

const readingSchema = `{"type": "record", "name": "Reading", "fields": [
	{"name": "sensor", "type": "string"}, {"name": "value", "type": "int"}]}`

func jsonRecords(ctx context.Context, client pulsar.Client, asked options, got seen) error {
	return records(ctx, client, asked, got, pulsar.NewJSONSchema(readingSchema, nil))
}

func avroRecords(ctx context.Context, client pulsar.Client, asked options, got seen) error {
	return records(ctx, client, asked, got, pulsar.NewAvroSchema(readingSchema, nil))
}

// records sends values by a schema that the broker keeps, and reads them back.
func records(
	ctx context.Context, client pulsar.Client, asked options, got seen, schema pulsar.Schema,
) error {
	consumer, err := subscribe(client, pulsar.ConsumerOptions{Topic: asked.topic, Schema: schema})
	if err != nil {
		return err
	}
	defer consumer.Close()
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: asked.topic, Schema: schema})
	if err != nil {
		return err
	}
	defer producer.Close()
	for number := range asked.count {
		sent := &pulsar.ProducerMessage{Value: &reading{fmt.Sprintf("sensor-%d", number), number}}
		if _, err := producer.Send(ctx, sent); err != nil {
			return err
		}
		message, err := consumer.Receive(ctx)
		if err != nil {
			return err
		}
		var found reading
		if err := message.GetSchemaValue(&found); err != nil {
			return err
		}
		if found.Sensor != fmt.Sprintf("sensor-%d", found.Value) {
			return fmt.Errorf("unexpected record %v", found)
		}
		got["records"] = append(got["records"], found.Value)
		if err := consumer.Ack(message); err != nil {
			return err
		}
	}
	return nil
}
