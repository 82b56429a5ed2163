// SPDX-License-Identifier: Apache-2.0

package audit

import "time"

const (
	// resendTime is how long lines wait before they are written again for the first time, and
	// maxResendTime how long they wait at most.
	resendTime    = 100 * time.Millisecond
	maxResendTime = 5 * time.Second
)

// send writes lines, with Resend until the output takes them. If the log ends meanwhile, it tries
// once more and then gives up.
func (l *Log) send(lines []byte) error {
	for wait := resendTime; ; wait = min(2*wait, maxResendTime) {
		ending := l.ending()
		err := l.options.Output.Write(lines)
		if err == nil || !l.options.Resend {
			return err
		}
		if ending {
			l.cut = true
			return err
		}
		l.report(time.Now(), err)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-l.stop:
			timer.Stop()
		}
	}
}

// ending reports whether the log ends.
func (l *Log) ending() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}
