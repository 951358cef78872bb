// @vitest-environment jsdom
import { expect, it } from 'vitest'
import { AlertList } from '../../../src/dashboard/page/alerts/alert-list.tsx'
import type { ShownAlert } from '../../../src/dashboard/page/alerts/alerts.ts'
import { mount } from '../../react/mount.ts'

const ALERT: ShownAlert = {
  id: 'a',
  state: 'firing',
  name: 'Ice',
  labels: [],
  summary: undefined,
  description: undefined,
  value: null,
  since: undefined,
  until: undefined,
  reason: undefined,
  isComplete: true,
}

it('an alert says that its rule did not have all events, only if it did not', async () => {
  const { text, render } = await mount(<AlertList alerts={[ALERT]} />)
  expect(text()).toBe('firingIce')

  await render(<AlertList alerts={[{ ...ALERT, isComplete: false }]} />)

  expect(text()).toBe('firingIceIts rule did not have all events when it began.')
})
