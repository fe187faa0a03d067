package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/apache/pulsar-client-go/pulsar"
)

// chunks sends messages that exceed the broker's limit, and checks that each arrives whole.
func chunks(ctx context.Context, client pulsar.Client, asked options, got seen) error {
	consumer, err := subscribe(client, pulsar.ConsumerOptions{Topic: asked.topic})
	if err != nil {
		return err
	}
	defer consumer.Close()
	producer, err := client.CreateProducer(pulsar.ProducerOptions{
		Topic: asked.topic, DisableBatching: true, EnableChunking: true,
	})
	if err != nil {
		return err
	}
	defer producer.Close()
	for number := range asked.count {
		whole := content(number, asked.size)
		if _, err := producer.Send(ctx, &pulsar.ProducerMessage{Payload: whole}); err != nil {
			return err
		}
		message, err := consumer.Receive(ctx)
		if err != nil {
			return err
		}
		if !bytes.Equal(message.Payload(), whole) {
			return fmt.Errorf("message %d came otherwise", number)
		}
		got["whole"] = append(got["whole"], number)
		if err := consumer.Ack(message); err != nil {
			return err
		}
	}
	return nil
}

// content differs at every place where a chunk could end, and between messages.
func content(number, size int) []byte {
	made := make([]byte, size)
	for at := range made {
		made[at] = byte((at + number) % 251)
	}
	return made
}
