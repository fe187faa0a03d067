package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/pulsar-client-go/pulsar"
)

// listed subscribes to COUNT topics by their names, TOPIC-0 and so on.
func listed(ctx context.Context, client pulsar.Client, asked options, got seen) error {
	wanted := pulsar.ConsumerOptions{}
	for number := range asked.count {
		wanted.Topics = append(wanted.Topics, fmt.Sprintf("%s-%d", asked.topic, number))
	}
	return together(ctx, client, asked, got, wanted)
}

// matching subscribes to them by a pattern.
func matching(ctx context.Context, client pulsar.Client, asked options, got seen) error {
	return together(ctx, client, asked, got, pulsar.ConsumerOptions{TopicsPattern: asked.topic + "-[0-9]+"})
}

// together sends each topic its number, and receives all numbers by one consumer.
func together(
	ctx context.Context, client pulsar.Client, asked options, got seen, wanted pulsar.ConsumerOptions,
) error {
	for number := range asked.count {
		topic := fmt.Sprintf("%s-%d", asked.topic, number)
		if _, err := sendNumbers(ctx, client, topic, number, number); err != nil {
			return err
		}
	}
	consumer, err := subscribe(client, wanted)
	if err != nil {
		return err
	}
	defer consumer.Close()
	numbers, err := receiveNumbers(ctx, consumer, asked.count)
	slices.Sort(numbers)
	got["topics"] = numbers
	return err
}
