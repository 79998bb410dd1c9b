class Wrong {
    void main() {
        var memory = MessageWindowChatMemory.withMaxMessages(-1);
        var other = TokenWindowChatMemory.builder().build();
        var model = OpenAiChatModel.builder(.modelName("unclosed
        var service = AiServices.builder(Missing.class).chatMemory(elsewhere).tools(new Nowhere()).moderationModel(x).systemMessageProvider(id -> load(id)).build();
        "not closed
