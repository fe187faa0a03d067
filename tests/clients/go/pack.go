package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strconv"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/crypto"
)

// packed sends messages in each way that the library can pack them, on a topic for each way.
func packed(ctx context.Context, client pulsar.Client, asked options, got seen) error {
	keys, err := newKeys()
	if err != nil {
		return err
	}
	ways := map[string]pulsar.ProducerOptions{
		"batched":            {},
		"batched by key":     {BatcherBuilderType: pulsar.KeyBasedBatchBuilder},
		"LZ4":                {CompressionType: pulsar.LZ4, DisableBatching: true},
		"LZ4 batched":        {CompressionType: pulsar.LZ4},
		"ZLIB":               {CompressionType: pulsar.ZLib, DisableBatching: true},
		"ZLIB batched":       {CompressionType: pulsar.ZLib},
		"ZSTD":               {CompressionType: pulsar.ZSTD, DisableBatching: true},
		"ZSTD batched":       {CompressionType: pulsar.ZSTD},
		"SNAPPY":             {CompressionType: pulsar.SNAPPY, DisableBatching: true},
		"SNAPPY batched":     {CompressionType: pulsar.SNAPPY},
		"sealed":             {Encryption: keys.sealing(), DisableBatching: true},
		"sealed batched":     {Encryption: keys.sealing()},
		"sealed LZ4":         {Encryption: keys.sealing(), CompressionType: pulsar.LZ4, DisableBatching: true},
		"sealed LZ4 batched": {Encryption: keys.sealing(), CompressionType: pulsar.LZ4},
	}
	number := 0
	for name, way := range ways {
		way.Topic = fmt.Sprintf("%s-%d", asked.topic, number)
		number++
		if got[name], err = exchanged(ctx, client, way, asked.count, keys); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// exchanged sends the numbers at once, so that they can be one batch, and receives them.
func exchanged(
	ctx context.Context, client pulsar.Client, way pulsar.ProducerOptions, count int, keys keyPair,
) ([]int, error) {
	consumer, err := subscribe(client, pulsar.ConsumerOptions{
		Topic: way.Topic, Decryption: &pulsar.MessageDecryptionInfo{KeyReader: keys},
	})
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	producer, err := client.CreateProducer(way)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	failed := make(chan error, count)
	for number := range count {
		message := &pulsar.ProducerMessage{Payload: []byte(strconv.Itoa(number)), Key: "one"}
		producer.SendAsync(ctx, message,
			func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { failed <- err })
	}
	if err := producer.FlushWithCtx(ctx); err != nil {
		return nil, err
	}
	for range count {
		if err := <-failed; err != nil {
			return nil, err
		}
	}
	return receiveNumbers(ctx, consumer, count)
}

// keyPair encrypts and decrypts messages.
type keyPair struct{ public, private []byte }

func newKeys() (keyPair, error) {
	made, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return keyPair{}, err
	}
	public, err := x509.MarshalPKIXPublicKey(&made.PublicKey)
	return keyPair{
		pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
		pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(made)}),
	}, err
}

func (keys keyPair) sealing() *pulsar.ProducerEncryptionInfo {
	return &pulsar.ProducerEncryptionInfo{KeyReader: keys, Keys: []string{"tests"}}
}

func (keys keyPair) PublicKey(name string, _ map[string]string) (*crypto.EncryptionKeyInfo, error) {
	return crypto.NewEncryptionKeyInfo(name, keys.public, nil), nil
}

func (keys keyPair) PrivateKey(name string, _ map[string]string) (*crypto.EncryptionKeyInfo, error) {
	return crypto.NewEncryptionKeyInfo(name, keys.private, nil), nil
}
