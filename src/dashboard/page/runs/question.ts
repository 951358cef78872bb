import type { GroupRunRow } from '../rows.ts'
import { isObject, oneLine } from '../evidence/evidence.ts'

/** The question of a run, in one line: its input, else its metadata; undefined if its events have neither. */
export function questionOf({ run, input }: Pick<GroupRunRow, 'run' | 'input'>): string | undefined {
  const asked = input?.input
  return (typeof asked === 'string' ? oneLine(asked, 200) : scalarsText(asked)) ?? scalarsText(run.metadata)
}

function scalarsText(value: unknown): string | undefined {
  if (!isObject(value)) return undefined
  const texts = Object.values(value).filter((each) => typeof each === 'string' || typeof each === 'number')
  return texts.length === 0 ? undefined : oneLine(texts.join(' · '), 200)
}
