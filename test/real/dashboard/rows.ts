import type { DashboardStatus } from '../../../src/dashboard/status.ts'
import type {
  ActivityRow,
  AlertRow,
  CandidateRow,
  FindAllRow,
  FindAllsRow,
  GroupRow,
  GroupRunRow,
  GroupsRow,
  MonitorRow,
  MonitorsRow,
  RunProgressRow,
  RunsRow,
  SearchesRow,
} from '../../../src/dashboard/page/rows.ts'
import { rowKey } from 'rivulet/live'
import type { TaskOutput } from 'rivulet'

/** Rows of each view by its address, and the status of the log. */
export interface Fixture {
  readonly views: Readonly<Record<string, ReadonlyMap<string, unknown>>>
  readonly status: DashboardStatus
  readonly documents: Readonly<Record<string, { readonly title: string; readonly text: string }>>
}

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const COMPANIES = [
  ['Nordhavn Robotics', 'Aarhus', 2016, 'Autonomous cranes for container terminals'],
  ['Verdant Grid', 'Lisbon', 2019, 'Software that balances local solar and storage'],
  ['Halcyon Optics', 'Jena', 2011, 'Lenses for lidar and for surgical cameras'],
  ['Kestrel Freight', 'Rotterdam', 2014, 'Booking and tracking of inland barges'],
  ['Maris Biologics', 'Galway', 2020, 'Enzymes from cold-water algae'],
  ['Tessellate', 'Montréal', 2018, 'Scheduling for hospitals'],
  ['Oriel Materials', 'Sheffield', 2009, 'Recycled aluminium for aircraft seats'],
  ['Sable & Finch', 'Kraków', 2021, 'Audit of machine-learned models'],
] as const

const NEWS = [
  'The port authority has approved the second automated berth, with operation from March.',
  'A recall of the 2024 battery packs begins, after three reports of overheating in storage.',
  'The regulator publishes its draft on the labelling of recycled content; comments are due in six weeks.',
  'Prices of cold-rolled aluminium fall for the third month in a row, by 2.4 per cent.',
  'The company has named a new chief financial officer, who joins from a competitor in May.',
  'A court in Leipzig has dismissed the patent claim over the folding mirror.',
]

/** A log with a little of everything, by a clock that the caller has. */
export function fullFixture(now: number, runs = 40, events = 60): Fixture {
  const views = {
    groups: groups(now),
    'group?group=tgrp_companies': runsOf(now, runs),
    ...runsAlone(now),
    ...findAlls(now),
    monitors: monitors(now),
    'monitor?monitor=monitor_ports': timeline(now, events),
    alerts: alerts(now),
    activity: activity(now),
    searches: searches(now),
  }
  return {
    views,
    status: logStatus(now),
    documents: {
      'https://nordhavn-robotics.example/about': {
        title: 'About Nordhavn Robotics',
        text: documentText('Nordhavn Robotics', 'Aarhus', 2016),
      },
      'https://ports.example/news/0': { title: 'News of the ports', text: `${NEWS.join('\n\n')}\n` },
    },
  }
}

/** A log without anything. */
export function emptyFixture(now: number): Fixture {
  const none = logStatus(now)
  const log = {
    ...none.log,
    entries: 0,
    bytes: 0,
    walBytes: 0,
    oldest: null,
    newest: null,
    readers: [],
    streams: [],
  }
  return {
    views: Object.fromEntries(
      ['groups', 'runs', 'findAlls', 'monitors', 'alerts', 'activity', 'searches'].map((name) => [
        name,
        new Map(),
      ]),
    ),
    status: { ...none, log },
    documents: {},
  }
}

/** Texts that try to break a page, in each place that shows one. */
export function hostileFixture(now: number): Fixture {
  const full = fullFixture(now, 4, 4)
  const html = '<img src=x onerror="document.title=\'owned\'"><script>document.title="owned"</script>'
  const long = 'W'.repeat(400)
  const hebrew = '\u202Eשלום עולם, hello \u2066world'
  const url = `https://long.example/${'path/'.repeat(60)}?q=${'x'.repeat(200)}`
  const output: TaskOutput = {
    type: 'json',
    content: {
      [html]: html,
      [long]: long,
      hebrew,
      url,
      script: 'javascript:alert(1)',
      __proto__x: null,
      deep: { a: [{ b: { c: { d: [1] } } }] },
    },
    basis: [
      {
        field: 'hebrew',
        reasoning: `${html} ${long}`,
        confidence: html,
        citations: [
          { url: 'javascript:alert(1)', title: html, excerpts: [html, long, hebrew] },
          { url, title: null, excerpts: null },
          { url: 'https://user:password@evil.example/', title: hebrew, excerpts: [] },
        ],
      },
    ],
  }
  const rows = new Map<string, GroupRow>([
    [rowKey(['tgrp_companies']), { kind: 'group', status: null, updated: now }],
    [
      rowKey(['tgrp_companies', 'trun_hostile']),
      {
        kind: 'run',
        run: {
          run_id: `trun_${long}`,
          status: 'completed',
          is_active: false,
          processor: html,
          metadata: { [long]: html },
          created_at: 'never',
          modified_at: null,
        },
        output,
        input: { input: `${html} ${hebrew} ${long}` },
        truncated: true,
        recorded: now - MINUTE,
      },
    ],
  ])
  const named = new Map<string, GroupsRow>([
    [rowKey(['tgrp_companies']), { group: `tgrp_${long}`, status: null, updated: now }],
    [rowKey([html]), { group: html, status: null, updated: now - HOUR }],
  ])
  const candidates = new Map<string, FindAllRow>([
    [
      rowKey(['findall_cranes', 'candidate', 'c']),
      {
        kind: 'candidate',
        candidate: {
          candidate_id: `candidate_${long}`,
          name: `${html} ${long}`,
          url: 'javascript:alert(1)',
          description: `${hebrew} ${html}`,
          match_status: 'matched',
          output: {
            [long]: { value: html, type: 'match_condition', is_matched: false },
            [html]: { value: [long, { deep: hebrew }], type: 'enrichment' },
          },
          basis: output.basis,
        },
        time: null,
        truncated: true,
        recorded: now - MINUTE,
      },
    ],
  ])
  const progress = new Map<string, RunProgressRow>([
    [
      rowKey(['trun_running', 'progress']),
      {
        kind: 'progress',
        meter: 100,
        sourcesRead: 1e21,
        sourcesConsidered: 0,
        messages: [html, long, hebrew].map((message) => ({ type: message, message, time: 'never' })),
        earlier: 1e9,
        updated: now,
      },
    ],
  ])
  return {
    ...full,
    views: {
      ...full.views,
      groups: named,
      'group?group=tgrp_companies': rows,
      'findAll?findAll=findall_cranes': candidates,
      'run?run=trun_running': progress,
    },
  }
}

/** What the page takes for more than a text. */
const READ = new Set(
  'kind type event_type status state match_status unknown resolved time created_at modified_at timestamp event_date since url'.split(
    ' ',
  ),
)

/** Fields whose names come from the service. */
const NAMED = new Set(['content', 'metadata', 'labels', 'task_run_status_counts'])

/** A log in which each text has a control character, and a mark that turns what follows it around. */
export function turnedFixture(now: number): Fixture {
  const { views, status, documents } = fullFixture(now, 4, 8)
  const turned = (value: unknown, name = ''): unknown => {
    if (typeof value === 'string') return READ.has(name) ? value : `${value} \u202E\u0007turned`
    if (Array.isArray(value)) return value.map((each) => turned(each, name))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) => [
        NAMED.has(name) ? String(turned(key)) : key,
        turned(each, key),
      ]),
    )
  }
  const rowsOf = (rows: ReadonlyMap<string, unknown>) =>
    new Map([...rows].map(([key, row]) => [key, turned(row)]))
  return {
    views: Object.fromEntries(Object.entries(views).map(([address, rows]) => [address, rowsOf(rows)])),
    status: turned(status) as DashboardStatus,
    documents: Object.fromEntries(
      Object.entries(documents).map(([url, document]) => [url, turned(document) as typeof document]),
    ),
  }
}

function groups(now: number): Map<string, GroupsRow> {
  const row = (group: string, counts: Record<string, number>, isActive: boolean, age: number) =>
    [
      rowKey([group]),
      {
        group,
        status: {
          num_task_runs: Object.values(counts).reduce((sum, count) => sum + count, 0),
          task_run_status_counts: counts,
          is_active: isActive,
          status_message: '',
          modified_at: new Date(now - age).toISOString(),
        },
        updated: now - age,
      },
    ] as const
  return new Map([
    row('tgrp_companies', { completed: 812, failed: 23, running: 40, queued: 125 }, true, 2_000),
    row('tgrp_press_review', { completed: 96, running: 4, queued: 20 }, true, 14_000),
    row('tgrp_patents_q3', { completed: 240 }, false, 3 * HOUR),
    row('tgrp_suppliers', { completed: 51, failed: 2, cancelled: 7 }, false, 26 * HOUR),
  ])
}

/** Runs without a group, as a list and each by itself. */
function runsAlone(now: number): Record<string, ReadonlyMap<string, unknown>> {
  const created = (age: number) => new Date(now - age).toISOString()
  const all: readonly GroupRunRow[] = [
    {
      kind: 'run',
      run: {
        run_id: 'trun_alone_1',
        status: 'completed',
        is_active: false,
        processor: 'core',
        created_at: created(6 * MINUTE),
        modified_at: created(4 * MINUTE),
        warnings: [{ type: 'warning', message: 'The field founded is not in the sources of 2026.' }],
      },
      input: {
        input: `When was Nordhavn Robotics founded, and by whom? ${'Say where it says so. '.repeat(12)}`,
      },
      output: {
        type: 'json',
        content: { founded: 2016, city: 'Aarhus' },
        basis: [
          {
            field: 'founded',
            reasoning: 'The page about the company names the year.',
            confidence: 'high',
            citations: [
              { url: 'https://nordhavn-robotics.example/about', title: 'About', excerpts: ['Chapter 12.'] },
            ],
          },
        ],
      },
      recorded: now - 4 * MINUTE,
    },
    {
      kind: 'run',
      run: {
        run_id: 'trun_alone_2_with_an_id_that_is_quite_long_and_has_no_place_to_break',
        status: 'failed',
        is_active: false,
        processor: 'base',
        created_at: created(3 * HOUR),
        modified_at: created(2 * HOUR),
        error: { message: 'No source could be read.' },
      },
      output: null,
      recorded: now - 2 * HOUR,
    },
  ]
  const listed = all.map(({ run, input, recorded }): [string, RunsRow] => [
    rowKey([run.run_id]),
    { id: run.run_id, run, ...(input !== undefined && { input }), updated: recorded },
  ])
  const each = all.map((row) => [`run?run=${row.run.run_id}`, new Map([[rowKey([row.run.run_id]), row]])])
  const running = progressOf(now)
  const { meter, sourcesRead, sourcesConsidered, messages, updated } = running
  const last = messages.at(-1) ?? null
  listed.push([
    rowKey(['trun_running']),
    { id: 'trun_running', run: null, progress: { meter, sourcesRead, sourcesConsidered, last }, updated },
  ])
  return {
    runs: new Map(listed),
    ...Object.fromEntries(each),
    'run?run=trun_running': new Map([[rowKey(['trun_running', 'progress']), running]]),
  }
}

/** The progress of a run that has not ended. */
function progressOf(now: number): RunProgressRow {
  const texts = [
    ['plan', 'Looking for the year, the founders and the seat of Nordhavn Robotics'],
    ['search', 'founded: searched the documents for “Nordhavn Robotics founded”'],
    ['result', 'founded: found 2016 in “About Nordhavn Robotics”, with a quotation that names the year'],
    ['tool_call', 'register: the tool server could not be reached'],
    ['search', 'seat: searched the documents for “Nordhavn Robotics seat Aarhus”'],
  ] as const
  return {
    kind: 'progress',
    meter: 62,
    sourcesRead: 7,
    sourcesConsidered: 24,
    messages: texts.map(([kind, message], index) => ({
      type: `task_run.progress_msg.${kind}`,
      message,
      time: new Date(now - (30 - index * 5) * 1_000).toISOString(),
    })),
    earlier: 12,
    updated: now - 3_000,
  }
}

/** FindAll runs, as a list and one by itself. */
function findAlls(now: number): Record<string, ReadonlyMap<string, unknown>> {
  const run = (findall_id: string, isActive: boolean, generated: number, matched: number) => ({
    findall_id,
    generator: 'core' as const,
    status: {
      status: isActive ? ('running' as const) : ('completed' as const),
      is_active: isActive,
      metrics: { generated_candidates_count: generated, matched_candidates_count: matched },
      termination_reason: isActive ? null : 'match_limit_met',
    },
  })
  const objective = 'Companies that make autonomous cranes or vehicles for container terminals'
  const listed: readonly FindAllsRow[] = [
    {
      findAll: 'findall_cranes',
      run: run('findall_cranes', true, 41, 3),
      objective,
      time: null,
      updated: now - 4_000,
    },
    {
      findAll: 'findall_2',
      run: run('findall_2', false, 120, 25),
      objective: null,
      time: null,
      updated: now - DAY,
    },
    { findAll: 'findall_3', run: null, objective: null, time: null, updated: now - 2 * DAY },
  ]
  const statuses = [
    'generated',
    'matched',
    'unmatched',
    'discarded',
    'matched',
    'matched',
    'generated',
    'unmatched',
  ] as const
  const rows = new Map<string, FindAllRow>([
    [
      rowKey(['findall_cranes']),
      {
        kind: 'run',
        run: run('findall_cranes', true, 41, 3),
        schema: {
          objective,
          entity_type: 'companies',
          match_conditions: [
            { name: 'founded_after_2010', description: 'The company was founded after 2010' },
          ],
        },
        time: null,
        updated: now - 4_000,
      },
    ],
  ])
  for (const [index, status] of statuses.entries()) {
    rows.set(rowKey(['findall_cranes', 'candidate', `c${index}`]), candidateRow(index, status, now))
  }
  return {
    findAlls: new Map(listed.map((row) => [rowKey([row.findAll]), row])),
    'findAll?findAll=findall_cranes': rows,
  }
}

function candidateRow(
  index: number,
  match_status: CandidateRow['candidate']['match_status'],
  now: number,
): CandidateRow {
  const [name, place, founded, business] = COMPANIES[(index + 7) % COMPANIES.length] ?? COMPANIES[0]
  const site = `https://${name.toLowerCase().replaceAll(/[^a-z]+/g, '-')}.example/about`
  const isMatched = match_status === 'matched'
  const citations = [
    {
      url: site,
      title: `About ${name}`,
      excerpts: [`It was founded in ${founded} by three engineers who had met at the harbour.`],
    },
  ]
  return {
    kind: 'candidate',
    candidate: {
      candidate_id: `c${index}`,
      name,
      url: site,
      description: business,
      match_status,
      ...((isMatched || match_status === 'unmatched') && {
        output: {
          founded_after_2010: { value: String(founded), type: 'match_condition', is_matched: founded > 2010 },
          makes_cranes: { value: business, type: 'match_condition', is_matched: isMatched },
          ...(isMatched && { seat: { value: place, type: 'enrichment' } }),
        },
        basis: [
          {
            field: 'founded_after_2010',
            reasoning: 'The page about the company names the year.',
            confidence: 'high',
            citations,
          },
          {
            field: 'makes_cranes',
            reasoning: 'The company says what it makes.',
            confidence: isMatched ? 'medium' : 'low',
            citations: [{ url: site, title: `About ${name}`, excerpts: [`What we do: ${business}.`] }],
          },
        ],
      }),
    },
    time: null,
    recorded: now - index * 20_000,
  }
}

function runsOf(now: number, runs: number): Map<string, GroupRow> {
  const rows = new Map<string, GroupRow>([
    [
      rowKey(['tgrp_companies']),
      {
        kind: 'group',
        status: {
          num_task_runs: 1_000,
          task_run_status_counts: { completed: 812, failed: 23, running: 40, queued: 125 },
          is_active: true,
          status_message: '',
          modified_at: new Date(now - 2_000).toISOString(),
        },
        updated: now - 2_000,
      },
    ],
    [
      rowKey(['tgrp_companies', 'notice', 'lost']),
      {
        kind: 'notice',
        type: 'source.lost',
        event: { message: 'the connection was reset' },
        recorded: now - 2 * HOUR,
      },
    ],
  ])
  for (let index = 0; index < runs; index += 1) {
    const recorded = now - 4_000 - index * 31_000
    const id = `trun_${index.toString(16).padStart(6, '0')}`
    rows.set(rowKey(['tgrp_companies', id]), runRow(index, id, recorded))
  }
  return rows
}

function runRow(index: number, id: string, recorded: number): GroupRow {
  const [name, place, founded, business] = COMPANIES[index % COMPANIES.length] ?? COMPANIES[0]
  const status = index % 9 === 5 ? 'failed' : index % 23 === 11 ? 'cancelled' : 'completed'
  const site = `https://${name.toLowerCase().replaceAll(/[^a-z]+/g, '-')}.example/about`
  return {
    kind: 'run',
    run: {
      run_id: id,
      status,
      is_active: false,
      processor: index % 3 === 0 ? 'core' : 'base',
      metadata: { batch: `2026-${String((index % 12) + 1).padStart(2, '0')}` },
      created_at: new Date(recorded - 48_000 - index * 900).toISOString(),
      modified_at: new Date(recorded - 300).toISOString(),
      error:
        status === 'failed'
          ? { message: 'The sources contradict each other; the run gave up after 12 pages.' }
          : null,
    },
    input: { input: { company: name, question: 'founded, seat, business' } },
    ...(index % 7 === 5 && { attempt: { number: index % 2 === 0 ? 12 : 2, first: `${id}_first` } }),
    output:
      status === 'completed'
        ? {
            type: 'json',
            content: {
              company: name,
              founded,
              seat: place,
              business,
              products: ['Model A', 'Model B', 'Service plan'],
            },
            basis: [
              {
                field: 'company',
                reasoning: 'The name is the one of the commercial register and of the company’s own site.',
                confidence: 'high',
                citations: [
                  {
                    url: site,
                    title: `About ${name}`,
                    excerpts: [`${name} is a company with its seat in ${place}.`],
                  },
                ],
              },
              {
                field: 'founded',
                reasoning: 'Two sources agree on the year; a third one names the year of the first product.',
                confidence: index % 4 === 1 ? 'medium' : 'high',
                citations: [
                  {
                    url: site,
                    title: `About ${name}`,
                    excerpts: [`It was founded in ${founded} by three engineers who had met at the harbour.`],
                  },
                  {
                    url: 'https://register.example/companies',
                    title: 'Commercial register',
                    excerpts: [`Entered on 4 May ${founded}. Share capital 25,000.`],
                  },
                ],
              },
              {
                field: 'business',
                reasoning: 'A summary of the company’s own words.',
                confidence: index % 4 === 1 ? 'low' : 'high',
                citations: [{ url: site, title: `About ${name}`, excerpts: [`What we do: ${business}.`] }],
              },
            ],
          }
        : null,
    recorded,
  }
}

function documentText(name: string, place: string, founded: number): string {
  const filler = Array.from(
    { length: 24 },
    (_, index) =>
      `Chapter ${index + 1}. The yard had been quiet for years when the first crane moved without a driver. What followed was slower than the newspapers wrote, and more thorough.`,
  )
  return [
    `# About ${name}`,
    `${name} is a company with its seat in ${place}.`,
    ...filler.slice(0, 12),
    `It was founded in ${founded} by three engineers who had met at the harbour.`,
    ...filler.slice(12),
    'What we do: Autonomous cranes for container terminals.',
  ].join('\n\n')
}

function monitors(now: number): Map<string, MonitorsRow> {
  const row = (
    monitor: string,
    events: number,
    last: number | null,
    state: MonitorsRow['state'],
    errors = 0,
  ) =>
    [
      rowKey([monitor]),
      {
        monitor,
        events,
        completions: 14,
        errors,
        gaps: 0,
        last: last === null ? null : now - last,
        state,
        since: now - DAY,
      },
    ] as const
  return new Map([
    row('monitor_ports', 48, 7 * MINUTE, 'live', 1),
    row('monitor_recalls', 9, 5 * HOUR, 'live'),
    row('monitor_aluminium', 122, 26 * HOUR, 'lost', 3),
    row('monitor_case_law', 0, null, 'live'),
    row('monitor_elections_2025', 311, 41 * DAY, 'cancelled'),
  ])
}

function timeline(now: number, events: number): Map<string, MonitorRow> {
  const rows = new Map<string, MonitorRow>()
  for (let index = 0; index < events; index += 1) {
    const recorded = now - 7 * MINUTE - index * 5.3 * HOUR - (index % 7) * 11 * MINUTE
    const id = `event_${index}`
    rows.set(rowKey(['monitor_ports', id]), monitorRow(index, id, recorded))
  }
  return rows
}

function monitorRow(index: number, id: string, recorded: number): MonitorRow {
  const time = new Date(recorded).toISOString()
  if (index % 11 === 7) {
    return {
      type: 'monitor.error',
      event: { event_type: 'error', error_message: 'The quota of the account is used up.', timestamp: time },
      time,
      recorded,
    }
  }
  if (index % 5 === 3) {
    return {
      type: 'monitor.completion',
      event: { event_type: 'completion', timestamp: time },
      time,
      recorded,
    }
  }
  if (index === 12) {
    return { type: 'source.lost', event: { message: 'the service answered 503' }, time, recorded }
  }
  const date = new Date(recorded - (index % 3) * DAY).toISOString().slice(0, index % 4 === 2 ? 7 : 10)
  const text = NEWS[index % NEWS.length] ?? ''
  const url = `https://ports.example/news/${index}`
  if (index % 6 === 4) {
    const basis = [
      {
        field: 'berths',
        reasoning: 'The page lists them.',
        citations: [{ url, title: 'The berths', excerpts: [`Berths in operation: ${12 + index}.`] }],
      },
    ]
    return {
      type: 'monitor.snapshot',
      event: {
        event_type: 'snapshot',
        event_id: id,
        event_group_id: 'group_1',
        event_date: date,
        changed_output: { type: 'json', content: { berths: 12 + index }, basis },
        previous_output: {
          type: 'json',
          content: { berths: 11 + index, operator: 'Port Authority' },
          basis: [],
        },
      },
      time,
      recorded,
    }
  }
  return {
    type: 'monitor.event_stream',
    event: {
      event_type: 'event_stream',
      event_id: id,
      event_group_id: 'group_1',
      event_date: date,
      output: {
        type: 'text',
        content: text,
        basis: [
          {
            field: 'output',
            reasoning: 'It is new since the last run, and of a source that the query names.',
            confidence: index % 4 === 0 ? 'medium' : 'high',
            citations: [
              { url: 'https://ports.example/news/0', title: 'News of the ports', excerpts: [text] },
              { url, title: null, excerpts: null },
            ],
          },
        ],
      },
    },
    time,
    recorded,
  }
}

function alerts(now: number): Map<string, AlertRow> {
  const none = { group: null, key: {}, events: [], unknown: null, resolved: null } as const
  const base = { ...none, episode: 'e', complete: true } as const
  const rows: AlertRow[] = [
    {
      ...base,
      state: 'firing',
      alert: 'RunsFail',
      labels: { alertname: 'RunsFail', group: 'tgrp_companies', severity: 'page' },
      annotations: {
        summary: 'More than 2 % of the runs of tgrp_companies fail',
        description: 'The sources may have changed. See the last failed runs.',
      },
      value: 23,
      since: new Date(now - 42 * MINUTE).toISOString(),
      changed: now - 40 * MINUTE,
    },
    {
      ...base,
      state: 'pending',
      alert: 'RunsSlow',
      labels: { alertname: 'RunsSlow', group: 'tgrp_press_review' },
      annotations: {},
      value: null,
      since: new Date(now - 90_000).toISOString(),
      changed: now - 90_000,
    },
    {
      ...base,
      state: 'unknown',
      alert: 'MonitorSilent',
      labels: { alertname: 'MonitorSilent', monitor: 'monitor_aluminium' },
      annotations: {},
      value: null,
      since: new Date(now - 3 * HOUR).toISOString(),
      unknown: 'lost',
      changed: now - 3 * HOUR,
    },
    {
      ...base,
      state: 'resolved',
      alert: 'Recall',
      labels: { alertname: 'Recall', monitor: 'monitor_recalls', severity: 'mail' },
      annotations: { summary: 'A recall that names a supplier of ours' },
      value: 'battery packs',
      since: new Date(now - 9 * HOUR).toISOString(),
      resolved: 'expired',
      changed: now - 8 * HOUR,
    },
  ]
  return new Map(rows.map((row, index) => [rowKey([row.alert, String(index)]), row]))
}

function activity(now: number): Map<string, ActivityRow> {
  const rows = new Map<string, ActivityRow>()
  for (let age = 0; age < 24 * 60; age += 1) {
    const minute = Math.floor(now / MINUTE) * MINUTE - age * MINUTE
    const wave = Math.sin(age / 9) + Math.sin(age / 41) * 1.5
    const runs = Math.max(0, Math.round(14 + wave * 9 + ((age * 7919) % 11)))
    const found = (age * 31) % 13 === 4 ? (age % 3) + 1 : 0
    // An hour without the recorder.
    if (age > 300 && age < 360) continue
    const counts = {
      'task_run.state': runs,
      'task_group.status': Math.round(runs / 4),
      ...(found > 0 && { 'monitor.event_stream': found }),
      ...(age % 37 === 5 && { 'alert.firing': 1 }),
      ...(age === 299 && { 'source.live': 3 }),
    }
    const events = Object.values(counts).reduce((sum, count) => sum + count, 0)
    const mean = 260 + wave * 70 + (age === 22 ? 2_400 : 0) + (age === 299 ? 90_000 : 0)
    rows.set(rowKey([new Date(minute).toISOString().replace(/:00\.000Z$/, 'Z')]), {
      minute,
      events,
      types: counts,
      lag: { count: runs, sum: mean * runs, max: mean * 2.4 + ((age * 101) % 240) },
    })
  }
  return rows
}

function searches(now: number): Map<string, SearchesRow> {
  const queries = ['automated berths', 'battery recall', 'patent folding mirror leipzig']
  return new Map([
    [
      rowKey(['dashboard', 'session_1']),
      {
        session: 'session_1',
        searches: queries.map((query, index) => ({
          request: { search_queries: [query] },
          results: [],
          recorded: now - HOUR + index * MINUTE,
        })),
      },
    ],
  ])
}

function logStatus(now: number): DashboardStatus {
  const reader = (
    kind: 'consumer' | 'process',
    name: string,
    entries: number,
    seconds: number,
    owner: string | null,
    deadLetters = 0,
    isPaused = false,
  ) => ({
    kind,
    name,
    cursor: '1',
    lag: { entries, seconds },
    oldestUnacknowledged: entries === 0 ? null : now - seconds * 1_000,
    acknowledgedAhead: 0,
    deadLetters,
    watermark: kind === 'process' ? now - 2_000 : null,
    holdsRetention: true,
    isPaused,
    owner,
  })
  return {
    now,
    log: {
      entries: 182_344,
      bytes: 341_000_000,
      walBytes: 4_100_000,
      oldest: now - 29 * DAY,
      newest: now - 1_400,
      readers: [
        reader('consumer', 'billing', 0, 0, '4711@research-1'),
        reader('consumer', 'warehouse', 12_480, 1_310, '4712@research-1', 3),
        reader('process', 'rules', 2, 0.4, '4711@research-1'),
        reader('process', 'view:dashboard/groups', 0, 0, '4720@research-1'),
        reader('consumer', 'migration-2025', 88_010, 9 * 86_400, null),
      ],
      streams: [
        { name: 'monitor:monitor_ports', position: '1', owner: '4711@research-1' },
        { name: 'group:tgrp_companies', position: '1', owner: '4711@research-1' },
        { name: 'monitor:monitor_elections_2025', position: '1', owner: null },
      ],
      inbox: { pending: 2, bytes: 4_096 },
      pausedBy: null,
      time: {
        now,
        through: now - 2_000,
        complete: true,
        recordings: [{ name: 'main', through: now - 2_000, isAwaited: true, behind: 0 }],
      },
    },
    can: { search: true, addRuns: true, documents: true },
  }
}
