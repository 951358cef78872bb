import { afterAll } from 'vitest'
import { createIsolated, type Isolated } from '../../../src/service/isolated/isolated.ts'

/** The isolated thread of all tests of a file. */
export function isolatedWork(): Isolated {
  const isolated = createIsolated()
  afterAll(() => isolated.close())
  return isolated
}
