import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { LIMITS, MAX_REPORTED_ISSUES } from '../../src/service/http/request-limits.ts'

it('docs/reference/wire.md has the limits of the embedded service', () => {
  const page = readFileSync(new URL('../../docs/reference/wire.md', import.meta.url), 'utf8')
  const table = page.split('<a id="service-limits"></a>')[1]?.split('<a id=')[0] ?? ''
  const rows = [...table.matchAll(/\| +([\d,]+) +\| +`(MAX_\w+|LIMITS\.\w+)` +\|/g)]
  const documented = rows.map(([, figure = '', name = '']) => [name, Number(figure.replaceAll(',', ''))])

  const figures = Object.entries(LIMITS).map(([name, figure]) => [`LIMITS.${name}`, figure])
  expect(Object.fromEntries(documented)).toEqual({ ...Object.fromEntries(figures), MAX_REPORTED_ISSUES })
})
