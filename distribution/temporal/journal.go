package temporal

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/waves"
)

// putPause is how long a bucket may miss entries that nothing waits for.
const putPause = 250 * time.Millisecond

// entry is what a chunk has done since the entry before.
type entry struct {
	Key    string        // of a call; empty for none
	Begun  int           // how many attempts to make the call have begun, less those that have ended without a result
	Result []byte        // of the call; nil for none
	Rows   []finishedRow // each once
	Stats  stats         // of the chunk, but with the events of no row since the entry before

	Changes []waves.Change // of the file of a run in batches

	segment string // that the entry was read from
}

// journal stores the entries of one attempt to run a chunk, in a segment: frames of a file, or objects of a
// bucket with frames. A frame is the length and the CRC-32 of an entry (4 bytes each), and the entry. Entries that wait for the disk
// at the same time wait for one sync. It is safe for concurrent use.
type journal struct {
	ctx     context.Context // outlasts the attempt
	blobs   *blobs
	folder  string // of the segments of the chunk
	segment string // the name of this one: those of later attempts are greater

	mu            sync.Mutex
	synced        *sync.Cond // isSyncing has become false
	file          *os.File   // nil before the first entry
	isListed      bool       // the folder of the file is synced, so that the file is found
	pending       []byte     // frames that a bucket does not have
	objects       int        // of the bucket
	timer         *time.Timer
	wrote, stored int // entries
	isSyncing     bool
	err           error // why no more entries are stored
}

// newJournal returns the journal of an attempt. It has no file before its first entry.
func newJournal(ctx context.Context, b *blobs, folder string) *journal {
	j := &journal{ctx: context.WithoutCancel(ctx), blobs: b, folder: folder, segment: newSegment(time.Now())}
	j.synced = sync.NewCond(&j.mu)
	return j
}

// newSegment returns the name of the segment of an attempt that began at a time.
func newSegment(began time.Time) string {
	return fmt.Sprintf("%016x-%s", began.UnixNano(), rand.Text())
}

// owner is what a segment is encrypted for: a frame is not valid in another one.
func owner(folder, segment string) string { return folder + "/" + segment }

// add adds an entry, which survives the end of the process in a folder, and that of the computer after sync.
func (j *journal) add(e entry) error {
	data, err := encode(e)
	if err == nil {
		data, err = j.blobs.sealer.seal(data, owner(j.folder, j.segment))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil && err == nil {
		head := binary.LittleEndian.AppendUint32(nil, uint32(len(data))) // a blob is smaller
		head = binary.LittleEndian.AppendUint32(head, crc32.ChecksumIEEE(data))
		err = j.write(append(head, data...))
		j.wrote++
	}
	if j.err == nil {
		j.err = err
	}
	return j.err
}

// write appends a frame. The caller holds the lock.
func (j *journal) write(frame []byte) (err error) {
	if !j.blobs.isLocal() {
		j.pending = append(j.pending, frame...)
		if j.timer == nil {
			j.timer = time.AfterFunc(putPause, func() { _ = j.sync() }) // the next entry reports an error
		}
		return nil
	}
	if j.file == nil {
		if j.file, err = j.blobs.createFile(owner(j.folder, j.segment)); err != nil {
			return err
		}
	}
	if _, err = j.file.Write(frame); err != nil {
		return fmt.Errorf("blobs: %w", err)
	}
	return nil
}

// sync returns when all entries are stored.
func (j *journal) sync() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for wanted := j.wrote; j.stored < wanted && j.err == nil; {
		if j.isSyncing {
			j.synced.Wait()
			continue
		}
		j.isSyncing = true
		upTo := j.wrote
		err := j.store()
		if j.isSyncing = false; err != nil {
			j.err = fmt.Errorf("blobs: %w", err)
		} else {
			j.stored = upTo
		}
		j.synced.Broadcast()
	}
	return j.err
}

// store stores what was written before. The caller holds the lock, which is released meanwhile.
func (j *journal) store() error {
	frames, name, file, isListed := j.pending, fmt.Sprintf("%s/%06d", owner(j.folder, j.segment), j.objects), j.file, j.isListed
	j.pending, j.timer, j.isListed = nil, nil, true
	if frames != nil {
		j.objects++
	}
	j.mu.Unlock()
	defer j.mu.Lock()
	switch {
	case frames != nil:
		return j.blobs.put(j.ctx, name, frames)
	case file == nil:
		return nil
	case isListed:
		return file.Sync()
	}
	var listed sync.WaitGroup
	defer listed.Wait()
	listed.Go(func() { syncFolder(filepath.Dir(file.Name())) })
	return file.Sync()
}

// syncFolder stores the names of the files in a folder, where the file system supports it.
func syncFolder(path string) {
	if dir, err := os.Open(path); err == nil { //nolint:gosec // the folder of a journal
		_ = dir.Sync()
		_ = dir.Close()
	}
}

// close ends the journal.
func (j *journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.timer != nil {
		j.timer.Stop()
	}
	if j.file != nil {
		_ = j.file.Close() // it is synced where that matters
	}
	j.err = os.ErrClosed
}

// readJournals calls take with the entries of all attempts to run the chunk with a folder, the oldest first, while it reads them.
// What follows a damaged frame was not synced.
func (b *blobs) readJournals(ctx context.Context, folder string, take func(*entry)) error {
	names, err := b.list(ctx, folder)
	for _, name := range names {
		if err == nil {
			err = b.readSegment(ctx, folder, name, take)
		}
	}
	return err
}

// readSegment calls take with the entries of a file, or an object.
func (b *blobs) readSegment(ctx context.Context, folder, name string, take func(*entry)) (err error) {
	in, err := b.client.Open(ctx, b.address(folder+"/"+name))
	if err != nil {
		return fmt.Errorf("blobs: %w", err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	segment, _, _ := strings.Cut(name, "/")
	for frames := bufio.NewReader(in); ; {
		data, err := readFrame(frames)
		if data == nil || err != nil {
			return err
		}
		var e entry
		if data, err = b.sealer.open(data, owner(folder, segment)); err == nil {
			err = decode(data, &e)
		}
		if err != nil {
			return fmt.Errorf("blobs: %s is not readable: %w", remotefs.Redacted(b.address(folder+"/"+name)), err)
		}
		e.segment = segment
		take(&e)
	}
}

// readFrame returns the content of the next frame; nil if there is none, or it is damaged.
func readFrame(in io.Reader) ([]byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, nil
		}
		return nil, fmt.Errorf("blobs: %w", err)
	}
	size := binary.LittleEndian.Uint32(head[:])
	data, err := io.ReadAll(io.LimitReader(in, int64(size)))
	if err != nil {
		return nil, fmt.Errorf("blobs: %w", err)
	}
	if len(data) < int(size) || crc32.ChecksumIEEE(data) != binary.LittleEndian.Uint32(head[4:]) {
		return nil, nil
	}
	return data, nil
}
