export type { OrderContext, OrderReply, OrderServices } from './context.ts'
export { getOrder } from './get-order.ts'
export { type PlacedOrder, placeOrder } from './place-order.ts'
