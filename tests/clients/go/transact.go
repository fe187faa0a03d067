package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

const (
	// perTransaction is the largest number of messages in a transaction.
	perTransaction = 5
	// abortEvery: one in this many transactions is aborted.
	abortEvery = 4
	// aborted is added to the numbers in aborted transactions: once in the first one, twice in the
	// second, and so on.
	aborted = 1_000_000
	// transactionLimit is the time after which a coordinator aborts a silent transaction.
	transactionLimit = 5 * time.Second
	// endLimit is the time after which a failed transaction has ended, and whatever it conflicted with.
	endLimit = transactionLimit + 2*time.Second
	// patience is how long to wait for answers: a broker does not answer an acknowledgement that
	// arrives before its consumer is open again.
	patience = 8 * time.Second
	// poll is how long to wait for the messages of one transaction.
	poll = 100 * time.Millisecond
)

// transacted is what became of transactions. A failed one is known neither to be committed nor to
// be aborted.
type transacted struct {
	Moved     ranges   `json:"moved"`
	Committed int      `json:"committed"`
	Aborted   int      `json:"aborted"`
	Failed    int      `json:"failed"`
	Errors    []string `json:"errors"`
	LongestMs float64  `json:"longest_ms"`
}

// mover takes messages from one topic and sends them to another in a transaction.
type mover struct {
	client   pulsar.Client
	consumer pulsar.Consumer
	producer pulsar.Producer
	report   *transacted
}

// transact moves messages until COUNT are moved (0: until told to stop). Every fourth transaction
// is aborted, and its messages come again.
func transact(ctx context.Context, client pulsar.Client, asked options) (any, error) {
	consumer, err := subscribe(client, pulsar.ConsumerOptions{
		Topic: asked.topic, Type: pulsar.Shared, NackRedeliveryDelay: poll,
	})
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	producer, err := client.CreateProducer(pulsar.ProducerOptions{
		// A message in a transaction may wait for ever.
		Topic: asked.target, DisableBatching: !asked.batch, SendTimeout: -1,
		BatchingMaxPublishDelay: 10 * time.Millisecond,
	})
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	sayReady()
	report := &transacted{Moved: ranges{}, Errors: []string{}}
	moving := mover{client, consumer, producer, report}
	for number := 0; ctx.Err() == nil && (asked.count == 0 || report.Moved.size() < asked.count); number++ {
		extra := 0
		if number%abortEvery == abortEvery-1 {
			extra = aborted * (number/abortEvery + 1)
		}
		moving.once(ctx, extra)
	}
	return report, nil
}

// once runs one transaction. If extra is not 0, it is added to the numbers and the transaction is
// aborted.
func (it mover) once(ctx context.Context, extra int) {
	messages := it.take(ctx)
	if len(messages) == 0 {
		return
	}
	begun := time.Now()
	err := it.within(messages, extra)
	it.report.LongestMs = max(it.report.LongestMs, float64(time.Since(begun).Microseconds())/1000)
	if err == nil {
		return
	}
	it.report.Failed++
	it.report.Errors = noted(it.report.Errors, err)
	time.AfterFunc(endLimit, func() { it.askAgain(messages) })
}

// take receives the messages of one transaction.
func (it mover) take(ctx context.Context) []pulsar.Message {
	ctx, expire := context.WithTimeout(ctx, poll)
	defer expire()
	var messages []pulsar.Message
	for len(messages) < perTransaction {
		message, err := it.consumer.Receive(ctx)
		if err != nil {
			break
		}
		messages = append(messages, message)
	}
	return messages
}

func (it mover) within(messages []pulsar.Message, extra int) error {
	transaction, err := it.client.NewTransaction(transactionLimit)
	if err != nil {
		return err
	}
	if err := it.fill(transaction, messages, extra); err != nil {
		_ = transaction.Abort(context.Background()) // or it times out
		return err
	}
	if extra != 0 {
		err = transaction.Abort(context.Background())
	} else {
		err = transaction.Commit(context.Background())
	}
	if err == nil {
		it.settled(messages, extra != 0)
	}
	return err
}

func (it mover) settled(messages []pulsar.Message, isAborted bool) {
	if isAborted {
		it.report.Aborted++
		return
	}
	it.report.Committed++
	for _, message := range messages {
		number, _ := strconv.Atoi(string(message.Payload()))
		it.report.Moved.add(number)
	}
}

func (it mover) fill(transaction pulsar.Transaction, messages []pulsar.Message, extra int) error {
	failed := make(chan error, len(messages))
	for _, message := range messages {
		number, err := strconv.Atoi(string(message.Payload()))
		if err != nil {
			return err
		}
		it.producer.SendAsync(context.Background(),
			&pulsar.ProducerMessage{Payload: []byte(strconv.Itoa(number + extra)), Transaction: transaction},
			func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { failed <- err })
	}
	var first error
	for _, message := range messages {
		first = errors.Join(first, it.consumer.AckWithTxn(message, transaction))
	}
	for range messages {
		first = errors.Join(first, <-failed)
	}
	return first
}

// askAgain requests redelivery of the messages of a failed transaction: a broker sends those again
// that an aborted transaction has acknowledged, but none that it was to acknowledge. One that is
// acknowledged by now does not come again.
func (it mover) askAgain(messages []pulsar.Message) {
	for _, message := range messages {
		it.consumer.Nack(message)
	}
}
