package main

import (
	"context"
	"strconv"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// read reads everything from the oldest message on, and then everything after the first half.
func read(ctx context.Context, client pulsar.Client, asked options, got seen) error {
	ids, err := sendNumbers(ctx, client, asked.topic, 0, asked.count-1)
	if err != nil {
		return err
	}
	starts := map[string]pulsar.MessageID{
		"earliest": pulsar.EarliestMessageID(), "behind": ids[asked.count/2-1],
	}
	for name, start := range starts {
		if got[name], err = readFrom(ctx, client, asked.topic, start); err != nil {
			return err
		}
	}
	return nil
}

func readFrom(
	ctx context.Context, client pulsar.Client, topic string, start pulsar.MessageID,
) ([]int, error) {
	reader, err := client.CreateReader(pulsar.ReaderOptions{Topic: topic, StartMessageID: start})
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	numbers := []int{}
	for reader.HasNext() {
		message, err := reader.Next(ctx)
		if err != nil {
			return nil, err
		}
		number, err := strconv.Atoi(string(message.Payload()))
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}

// seek receives everything, seeks to a time, and seeks to a message. (In a client that has sought a
// message before, SeekByTime would go by that message, too.)
func seek(ctx context.Context, client pulsar.Client, asked options, got seen) error {
	begun := time.Now().Add(-time.Minute)
	ids, err := sendNumbers(ctx, client, asked.topic, 0, asked.count-1)
	if err != nil {
		return err
	}
	consumer, err := subscribe(client, pulsar.ConsumerOptions{Topic: asked.topic})
	if err != nil {
		return err
	}
	defer consumer.Close()
	if got["first"], err = receiveNumbers(ctx, consumer, asked.count); err != nil {
		return err
	}
	if err := consumer.SeekByTime(begun); err != nil {
		return err
	}
	if got["by_time"], err = receiveNumbers(ctx, consumer, asked.count); err != nil {
		return err
	}
	if err := consumer.Seek(ids[asked.count/2]); err != nil {
		return err
	}
	// The next message is the first to come.
	got["by_id"], err = receiveNumbers(ctx, consumer, asked.count-asked.count/2-1)
	return err
}
