// SPDX-License-Identifier: Apache-2.0

package audit

import "time"

const (
	// resendTime is the first pause before lines are written again, and maxResendTime is the
	// longest pause.
	resendTime    = 100 * time.Millisecond
	maxResendTime = 5 * time.Second
)

// send writes lines. With Resend it repeats them until the output takes them, or until the log is
// closed and one more try has failed.
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

// ending reports whether the log is being closed.
func (l *Log) ending() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}
