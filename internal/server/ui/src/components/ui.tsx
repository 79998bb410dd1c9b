import { forwardRef, type ButtonHTMLAttributes, type ReactNode } from 'react'
import { Dialog as RDialog, DropdownMenu as RMenu, Tooltip as RTooltip } from 'radix-ui'
import { X, type LucideIcon } from 'lucide-react'

/** Joins class names, without those that do not apply. */
export const cx = (...names: (string | false | null | undefined)[]) => names.filter(Boolean).join(' ')

type Variant = 'primary' | 'secondary' | 'ghost' | 'danger'
const variants: Record<Variant, string> = {
  primary: 'bg-accent text-on-accent hover:bg-accent-hover',
  secondary: 'border border-line-strong/60 bg-raised text-ink hover:bg-panel',
  ghost: 'text-dim hover:bg-sunken hover:text-ink',
  danger: 'border border-bad/60 text-bad hover:bg-bad-soft',
}

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  variant?: Variant
  small?: boolean
  icon?: LucideIcon
}
export const Button = forwardRef<HTMLButtonElement, ButtonProps>(function Button(
  { variant = 'secondary', small, icon: Icon, className, children, ...rest },
  ref,
) {
  const size = small ? 'h-7 px-2 text-[0.82rem] gap-1 rounded-md' : 'h-9 px-3.5 gap-1.5 rounded-lg'
  return (
    <button ref={ref} type="button" className={cx('inline-flex shrink-0 items-center justify-center font-medium whitespace-nowrap transition-colors disabled:opacity-50', size, variants[variant], className)} {...rest}>
      {Icon && <Icon aria-hidden size={small ? 14 : 16} />}
      {children}
    </button>
  )
})

/** A button with an icon only; the label is its name and tooltip. */
export const IconButton = forwardRef<HTMLButtonElement, Omit<ButtonProps, 'children'> & { label: string; icon: LucideIcon; shortcut?: string }>(
  function IconButton({ label, icon: Icon, small, variant = 'ghost', className, shortcut, ...rest }, ref) {
    return (
      <Tip label={shortcut ? `${label} (${shortcut})` : label}>
        <button ref={ref} type="button" aria-label={label} className={cx('inline-flex shrink-0 items-center justify-center transition-colors disabled:opacity-50', small ? 'size-7 rounded-md' : 'size-9 rounded-lg', variants[variant], className)} {...rest}>
          <Icon aria-hidden size={small ? 15 : 18} />
        </button>
      </Tip>
    )
  },
)

/** Shows a text while the pointer or the focus is on the child. */
export function Tip({ label, children }: { label: string; children: ReactNode }) {
  return (
    <RTooltip.Root delayDuration={350}>
      <RTooltip.Trigger asChild>{children}</RTooltip.Trigger>
      <RTooltip.Portal>
        <RTooltip.Content sideOffset={6} className="z-50 max-w-72 rounded-md bg-ink px-2 py-1 text-[0.8rem] text-bg shadow-pop">
          {label}
        </RTooltip.Content>
      </RTooltip.Portal>
    </RTooltip.Root>
  )
}

export interface DialogProps {
  open: boolean
  onClose: () => void
  title: string
  description?: string
  children: ReactNode
  side?: 'center' | 'left' | 'right'
  hideTitle?: boolean
}
const sides = {
  center: 'left-1/2 top-[12vh] max-h-[80vh] w-[min(34rem,calc(100vw-2rem))] -translate-x-1/2 rounded-2xl border',
  left: 'inset-y-0 left-0 w-[min(20rem,88vw)] border-r',
  right: 'inset-y-0 right-0 w-[min(24rem,94vw)] border-l',
}
/** Focuses the dialog itself and not its first button, unless something in it has the focus already. */
function focusContent(e: Event) {
  e.preventDefault()
  const content = e.currentTarget as HTMLElement
  if (!content.contains(document.activeElement)) content.focus()
}

/** A modal dialog, in the center or as a sheet at a side. */
export function Dialog({ open, onClose, title, description, children, side = 'center', hideTitle }: DialogProps) {
  return (
    <RDialog.Root open={open} onOpenChange={(o) => !o && onClose()}>
      <RDialog.Portal>
        <RDialog.Overlay className="fixed inset-0 z-40 bg-black/40" />
        <RDialog.Content onOpenAutoFocus={hideTitle ? focusContent : undefined} {...(description ? {} : { 'aria-describedby': undefined })} className={cx('fixed z-50 flex flex-col overflow-hidden bg-bg shadow-pop outline-none', sides[side])}>
          <div className={hideTitle ? 'sr-only' : 'flex items-start gap-3 px-5 pt-4 pb-2'}>
            <div className="min-w-0 flex-1">
              <RDialog.Title className="text-[1.05rem] font-semibold">{title}</RDialog.Title>
              {description && <RDialog.Description className="mt-1 text-dim">{description}</RDialog.Description>}
            </div>
            <RDialog.Close asChild>
              <IconButton small icon={X} label="Close" />
            </RDialog.Close>
          </div>
          <div className="min-h-0 flex-1 overflow-auto">{children}</div>
        </RDialog.Content>
      </RDialog.Portal>
    </RDialog.Root>
  )
}

export interface MenuItem {
  label: string
  icon?: LucideIcon
  danger?: boolean
  onSelect: () => void
}
/** A menu that opens from its trigger. */
export function Menu({ trigger, items }: { trigger: ReactNode; items: MenuItem[] }) {
  return (
    <RMenu.Root modal={false}>
      <RMenu.Trigger asChild>{trigger}</RMenu.Trigger>
      <RMenu.Portal>
        <RMenu.Content align="end" sideOffset={4} className="z-50 min-w-44 rounded-xl border bg-raised p-1 shadow-pop">
          {items.map(({ label, icon: Icon, danger, onSelect }) => (
            <RMenu.Item key={label} onSelect={onSelect} className={cx('flex cursor-pointer items-center gap-2 rounded-lg px-2.5 py-1.5 outline-none data-[highlighted]:bg-sunken', danger && 'text-bad')}>
              {Icon && <Icon aria-hidden size={15} />}
              {label}
            </RMenu.Item>
          ))}
        </RMenu.Content>
      </RMenu.Portal>
    </RMenu.Root>
  )
}

const tones = { neutral: 'bg-sunken text-dim', accent: 'bg-accent-soft text-accent', ok: 'bg-ok-soft text-ok', warn: 'bg-warn-soft text-warn', bad: 'bg-bad-soft text-bad' }
export type Tone = keyof typeof tones
export function Badge({ tone = 'neutral', children, className }: { tone?: Tone; children: ReactNode; className?: string }) {
  return <span className={cx('inline-flex items-center gap-1 rounded-full px-2 py-px text-[0.76rem] font-medium whitespace-nowrap', tones[tone], className)}>{children}</span>
}

/** Placeholders for content that is being loaded. */
export function Skeleton({ lines = 3, className }: { lines?: number; className?: string }) {
  const widths = ['w-11/12', 'w-3/4', 'w-5/6', 'w-2/3']
  return (
    <div role="status" aria-label="Loading" className={cx('flex flex-col gap-2.5', className)}>
      {Array.from({ length: lines }, (_, i) => (
        <div key={i} className={cx('skeleton h-4', widths[i % widths.length])} />
      ))}
    </div>
  )
}
export { RTooltip }
