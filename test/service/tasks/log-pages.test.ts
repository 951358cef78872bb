import { describe, expect, it } from 'vitest'
import { batchOf } from '../../../src/http/server-sent-events.ts'
import { LogPages } from '../../../src/service/tasks/log-pages.ts'

const page = (bytes: number) => ({ events: batchOf(['x'.repeat(bytes)]), position: 1 })

describe('the cache of log pages', () => {
  it('evicts the least recently used pages above its limit', () => {
    const pages = new LogPages(30)
    for (const key of ['a', 'b', 'c']) pages.add(key, page(10))
    pages.get('a')
    pages.add('d', page(10))
    expect(['a', 'b', 'c', 'd'].filter((key) => pages.get(key) !== undefined)).toEqual(['a', 'c', 'd'])
  })

  it('never exceeds its limit, even if a page is larger', () => {
    const pages = new LogPages(30)
    pages.add('small', page(10))
    pages.add('large', page(31))
    expect(pages.get('small')).toBeUndefined()
    expect(pages.get('large')).toBeUndefined()
    pages.add('later', page(30))
    expect(pages.get('later')).toBeDefined()
  })
})
