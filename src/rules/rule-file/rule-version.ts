import { hash, hashString } from '../../protocol/identity-hash.ts'
import type { Expression } from '../cel/expression.ts'
import type { CompiledRule, Window } from '../compiled-rule.ts'

/**
 * A hash of the parts of a rule that its state depends on, 8 hexadecimal digits. The same rule has the same one in each process and
 * in each version of this package: a change here drops the state of all rules.
 */
export function versionOf(rule: Omit<CompiledRule, 'version'>): string {
  const parts = [
    rule.types === undefined ? null : [...rule.types].toSorted(),
    text(rule.when),
    rule.windows.map(windowParts),
    rule.key.map(({ name, value }) => [name, text(value)]),
    rule.isPerEvent,
    text(rule.resolve.when),
    rule.lateness,
    rule.backfill,
    [...rule.labels].map(([name, template]) => [name, template.text]).toSorted(),
  ]
  hashString(JSON.stringify(parts))
  return ((hash[0] ?? 0) >>> 0).toString(16).padStart(8, '0')
}

function windowParts(window: Window): readonly unknown[] {
  switch (window.kind) {
    case 'count':
      return [window.kind, text(window.when), window.over, window.gte]
    case 'rate':
      return [window.kind, text(window.when), window.over, window.per, window.gte]
    case 'distinct':
      return [window.kind, text(window.when), text(window.value), window.over, window.gte]
    case 'spike':
      return [window.kind, text(window.when), window.over, window.factor, window.min]
    case 'new':
      return [window.kind, text(window.when), text(window.value), window.within]
    case 'changed':
      return [window.kind, text(window.when), text(window.value)]
    case 'absence':
      return [window.kind, window.within, window.of === undefined ? null : [...window.of].toSorted()]
    case 'sequence':
      return [window.kind, window.steps.map(text), text(window.notThen), window.within]
  }
}

function text(expression: Expression | undefined): string | null {
  return expression === undefined ? null : expression.text.trim()
}
