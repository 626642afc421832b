import { z } from 'zod'

const NAME = /^[A-Za-z0-9_.:-]{1,64}$/
const MAX_ITEMS = 50
const MAX_QUANTITY = 1000

// Printable: no control, format, surrogate, private-use or unassigned character and no line separator; length
// in code points, as JSON Schema counts it.
const PRINTABLE = /^[^\p{C}\p{Zl}\p{Zp}]{1,128}$/u

const item = z.strictObject({
  sku: z.string().regex(NAME),
  quantity: z.int().min(1).max(MAX_QUANTITY),
})

/** What a client posts. */
export const orderRequestSchema = z.strictObject({
  customerId: z.string().regex(NAME),
  currency: z.string().regex(/^[A-Z]{3}$/),
  items: z
    .array(item)
    .min(1)
    .max(MAX_ITEMS)
    .superRefine((items, context) => {
      const seen = new Set<string>()
      for (const [index, { sku }] of items.entries()) {
        if (seen.has(sku))
          context.addIssue({ code: 'custom', path: [index, 'sku'], message: 'SKU appears twice' })
        seen.add(sku)
      }
    }),
  reference: z.string().regex(PRINTABLE).optional(),
})

export type OrderRequest = z.output<typeof orderRequestSchema>

export interface OrderItem {
  readonly sku: string
  readonly quantity: number
  readonly unitPrice: number
  readonly lineTotal: number
}

/** An order as the API shows it; member order is the order in which it is written. */
export interface Order {
  readonly id: string
  readonly status: 'accepted' | 'cancelled'
  readonly version: number
  readonly customerId: string
  readonly currency: string
  readonly items: readonly OrderItem[]
  readonly total: number
  readonly pricing: 'live' | 'fallback'
  readonly reference?: string
  readonly createdAt: string
  readonly updatedAt: string
}

/** Puts prices on a request. `prices` must hold every SKU of it. */
export function priceOrder(
  request: OrderRequest,
  prices: ReadonlyMap<string, number>,
  made: { id: string; at: string; pricing: Order['pricing'] },
): Order {
  let total = 0
  const items = request.items.map(({ sku, quantity }) => {
    const unitPrice = prices.get(sku)
    if (unitPrice === undefined) throw new TypeError('an order was priced without all of its prices')
    const lineTotal = unitPrice * quantity
    total += lineTotal
    return { sku, quantity, unitPrice, lineTotal }
  })
  return {
    id: made.id,
    status: 'accepted',
    version: 1,
    customerId: request.customerId,
    currency: request.currency,
    items,
    total,
    pricing: made.pricing,
    ...(request.reference !== undefined && { reference: request.reference }),
    createdAt: made.at,
    updatedAt: made.at,
  }
}

/** The next version of an order, cancelled at `at`; its time never goes back, whatever the wall clock does. */
export function cancelled(order: Order, at: string): Order {
  const updatedAt = at > order.updatedAt ? at : order.updatedAt
  return { ...order, status: 'cancelled', version: order.version + 1, updatedAt }
}

/** What an API key may read of an order. */
export type View = 'full' | 'masked'

const MASK = '***'

/** The order's JSON as `view` may see it. Masking the same text twice gives the same bytes, so replays stay true. */
export function viewOrderJson(json: string, view: View): string {
  if (view === 'full') return json
  const order = JSON.parse(json) as Order
  return JSON.stringify({
    ...order,
    customerId: MASK,
    ...(order.reference !== undefined && { reference: MASK }),
  })
}

/** A strong validator (RFC 9110, section 8.8.3): one version in one view has one text. */
export function orderEtag(version: number, view: View): string {
  return view === 'full' ? `"v${version}"` : `"v${version}-${view}"`
}
