// A program that is not complete: the parameter of the tool has no name.
@AiService
public interface Guide {
    String guide(@UserMessage String question);
}

class Shop {
    @Tool("Cancels an order.")
    void cancel(Order.of()) {
    }
}
