package main

import (
	"context"
	"strconv"

	"github.com/apache/pulsar-client-go/pulsar"
)

// seen is what was received, in order: the numbers of messages by the way they were received.
type seen map[string][]int

// trying makes a verb of something that is done with a few messages of its own.
func trying(do func(ctx context.Context, client pulsar.Client, asked options, got seen) error) action {
	return func(ctx context.Context, client pulsar.Client, asked options) (any, error) {
		sayReady()
		got := seen{}
		err := do(ctx, client, asked, got)
		return map[string]seen{"seen": got}, err
	}
}

// subscribe starts at the oldest message.
func subscribe(client pulsar.Client, wanted pulsar.ConsumerOptions) (pulsar.Consumer, error) {
	wanted.SubscriptionName = "s"
	wanted.SubscriptionInitialPosition = pulsar.SubscriptionPositionEarliest
	return client.Subscribe(wanted)
}

// sendNumbers sends the messages first to last, one by one, and returns their ids.
func sendNumbers(
	ctx context.Context, client pulsar.Client, topic string, first, last int,
) ([]pulsar.MessageID, error) {
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true})
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	var ids []pulsar.MessageID
	for number := first; number <= last; number++ {
		id, err := producer.Send(ctx, &pulsar.ProducerMessage{Payload: []byte(strconv.Itoa(number))})
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// receiveNumbers receives and acknowledges this many messages.
func receiveNumbers(ctx context.Context, consumer pulsar.Consumer, count int) ([]int, error) {
	numbers := []int{}
	for len(numbers) < count {
		message, err := consumer.Receive(ctx)
		if err != nil {
			return numbers, err
		}
		number, err := strconv.Atoi(string(message.Payload()))
		if err != nil {
			return numbers, err
		}
		numbers = append(numbers, number)
		if err := consumer.Ack(message); err != nil {
			return numbers, err
		}
	}
	return numbers, nil
}
