import { FileDown, Table2 } from 'lucide-react'
import { useRef, useState } from 'react'
import { Button, cx } from '@/components/ui'

interface DropZoneProps {
  error: string
  onFile: (file: File) => void
  onTemplate: () => void
}

/** Takes a file by drop or by choice. */
export function DropZone({ error, onFile, onTemplate }: DropZoneProps) {
  const [over, setOver] = useState(false)
  const picker = useRef<HTMLInputElement>(null)
  const take = (files: FileList | null) => files?.[0] && onFile(files[0])
  return (
    <div>
      <div
        onDragOver={(e) => (e.preventDefault(), setOver(true))}
        onDragLeave={() => setOver(false)}
        onDrop={(e) => (e.preventDefault(), setOver(false), take(e.dataTransfer.files))}
        className={cx('grid min-h-64 place-items-center rounded-2xl border-2 border-dashed p-6 text-center', over ? 'border-accent bg-accent-soft' : 'border-line-strong')}
      >
        <div>
          <Table2 aria-hidden size={30} className="mx-auto text-accent" />
          <p className="mt-3 text-[1.05rem] font-medium">Drop a CSV or JSON lines file here</p>
          <p className="mt-1 text-dim">One row is one call of the flow. Types are checked before the start.</p>
          <div className="mt-4 flex flex-wrap justify-center gap-2">
            <Button variant="primary" onClick={() => picker.current?.click()}>Choose a file</Button>
            <Button icon={FileDown} onClick={onTemplate}>Empty CSV with the columns</Button>
          </div>
          <input ref={picker} type="file" aria-label="File with rows" accept=".csv,.tsv,.json,.jsonl,.ndjson,text/csv" className="sr-only" tabIndex={-1} onChange={(e) => (take(e.target.files), (e.target.value = ''))} />
        </div>
      </div>
      {error && <p role="alert" className="mt-3 rounded-lg bg-bad-soft px-3 py-2 text-bad">{error}</p>}
    </div>
  )
}
