import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { PARTS } from '../../bench/bundle.ts'

const pageOf = (path: string) => readFileSync(new URL(`../../docs/${path}`, import.meta.url), 'utf8')
const limitOf = (name: string) => PARTS.find((part) => part.name === name)?.boundKb

it('docs/internals/performance.md has each limit of a browser bundle, and a size below it', () => {
  const [, table = ''] = pageOf('internals/performance.md').split(/^\| Part +\| Size +\| Limit +\|\n.*\n/m)
  const rows = [
    ...table.slice(0, table.indexOf('\n\n')).matchAll(/^\| (.+?) +\| ([\d.]+) kB +\| ([\d.]+) kB/gm),
  ]
  const named = rows.map(([, name, , limit]) => ({ name, limit: Number(limit) }))
  const above = rows.filter(([, , size, limit]) => Number(size) > Number(limit))

  expect(named).toEqual(PARTS.map(({ name, boundKb }) => ({ name, limit: boundKb })))
  expect(above).toEqual([])
})

it('docs/reference/client.md has the limits of the client and of a page that follows one monitor', () => {
  const page = pageOf('reference/client.md')

  expect(page).toContain(`at most ${limitOf('rivulet and rivulet/operators')} kB with the operators`)
  expect(page).toContain(`This program has at most ${limitOf('a page that follows one monitor')} kB`)
})
