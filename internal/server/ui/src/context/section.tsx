import type { ReactNode } from 'react'

/** A part of the panel with its heading. */
export function Section({ title, children, aside }: { title: string; children: ReactNode; aside?: ReactNode }) {
  return (
    <section className="mt-5">
      <div className="mb-1.5 flex items-baseline justify-between gap-2">
        <h3 className="text-[0.9rem] font-semibold">{title}</h3>
        {aside}
      </div>
      {children}
    </section>
  )
}
