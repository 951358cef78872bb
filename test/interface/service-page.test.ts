import { expect, it } from 'vitest'
import { memberNames } from '../../build/tables/interfaces.ts'
import { namesIn, rowsOf } from '../support/markdown-table.ts'

it('docs/reference/service.md has each member of the service', () => {
  const names = rowsOf('docs/reference/service.md', 'Member').flatMap(([name]) => namesIn(name))

  expect(names.toSorted()).toEqual(memberNames('ResearchService'))
})
