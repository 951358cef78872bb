import { describe, expect, it, vi } from 'vitest'
import { allowedHosts } from '../../../src/service/corpus/source-policy.ts'

describe('allowedHosts', () => {
  it.each([
    [{ include_domains: ['b.c'] }, ['b.c', 'a.b.c', 'x.a.b.c'], ['c', 'ab.c', 'b.c.d', '']],
    [{ include_domains: ['.C'] }, ['b.c', 'c'], ['bc', '']],
    [{ exclude_domains: ['b.c'] }, ['c', 'ab.c', ''], ['b.c', 'a.b.c']],
    [{ include_domains: ['c'], exclude_domains: ['a.c'] }, ['b.c'], ['a.c', 'b.a.c', 'd']],
    [{ include_domains: ['c'], exclude_domains: ['c'] }, [], ['c', 'a.c']],
  ])('of %j', (policy, allowed, refused) => {
    const isAllowed = allowedHosts(policy)
    expect([...allowed, ...refused].filter((host) => isAllowed?.(host))).toEqual(allowed)
  })

  it.each([{}, { include_domains: [] }, { exclude_domains: [] }, { after_date: '2026-01-01' }])(
    'has no restriction in %j',
    (policy) => expect(allowedHosts(policy)).toBeUndefined(),
  )

  it('does one lookup for each label of a host, for any number of domains', () => {
    const domains = Array.from({ length: 100_000 }, (_, index) => `site-${index}.example`)
    const isAllowed = allowedHosts({ include_domains: domains, exclude_domains: domains })
    const lookups = vi.spyOn(Set.prototype, 'has')
    try {
      for (let host = 0; host < 100; host++) isAllowed?.(`docs.other-${host}.example`)
      expect(lookups.mock.calls.length).toBe(300)
    } finally {
      lookups.mockRestore()
    }
  })
})
